// Opening a segment file that may hold anything. The input is what is different
// from a small intact file, so that zeros are a good start; checksums are made
// right afterwards, or no change would get past them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "draftd/segment.h"
#include "segment_file.h"

namespace {

using draftd::Token;
using draftd::testing::Bytes;
using draftd::testing::ScratchFile;

Bytes intact_file() {
  draftd::SegmentBuilder builder("fingerprint");
  builder.add(std::vector<Token>{1, 2, 1, 2, 3}, "first", 5);
  builder.add(std::vector<Token>{2, 1, 2}, "", -6);
  builder.add(std::vector<Token>(40, 9), "third", 7);
  const ScratchFile file;
  builder.write(file.path());
  return file.read();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes intact = intact_file();
  Bytes bytes = intact;
  if (size > bytes.size()) bytes.resize(size);
  std::transform(data, data + size, bytes.begin(), bytes.begin(),
                 [](std::uint8_t difference, std::uint8_t byte) { return difference ^ byte; });
  draftd::testing::reseal(bytes);
  const ScratchFile file;
  file.write(bytes);
  try {
    draftd::testing::read_all(draftd::Segment::open(file.path()));
  } catch (const draftd::SegmentError&) {
    return 0;  // refused, as most are
  }
  return 0;
}
