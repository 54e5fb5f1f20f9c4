// A segment of given documents, without a file that outlives it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "draftd/segment.h"

namespace draftd::testing {

inline std::shared_ptr<const Segment> sealed(const std::vector<std::vector<Token>>& documents) {
  static std::atomic<int> number{0};
  const auto name = "draftd-" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".segment";
  const std::filesystem::path path = std::filesystem::temp_directory_path() / name;
  SegmentBuilder builder("");
  for (const std::vector<Token>& document : documents) builder.add(document, "", 0);
  builder.write(path.string());
  auto segment = Segment::open(path.string());
  std::filesystem::remove(path);
  return segment;
}

}  // namespace draftd::testing
