// A model as bytes: docs/data-directory.md, "What was learned", has the format.
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "learn/storage.h"
#include "support/xxh64.h"

namespace draftd {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Bytes = std::vector<std::uint8_t>;

constexpr std::array<char, 8> kMagic{'d', 'r', 'a', 'f', 't', 'd', 'M', '1'};

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t checksum = 0;  // of everything behind it
  std::uint64_t start = 0;     // of the start that cells which are left out have
  std::uint64_t lessons = 0;
  std::uint32_t cells = cells::kCount;
  std::uint32_t agreements = cells::kAgreements;
  std::uint32_t standings = cells::kStandings;
  std::uint32_t knots = kKnots;
  std::uint32_t stored = 0;  // cells that are not as at the start
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Header) == 56);
constexpr std::size_t kChecked = 16;  // where the checksum begins

constexpr std::size_t kWeights = (cells::kAgreements + cells::kStandings) * Candidate::kInputs + kKnots;
constexpr std::size_t kPerCell = sizeof(std::uint16_t) + 2 * sizeof(float);

template <typename T>
void write(Bytes& bytes, const std::vector<T>& values) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(values.data());
  bytes.insert(bytes.end(), first, first + values.size() * sizeof(T));
}

// Takes so many values off the front; the length was checked before.
template <typename T>
std::vector<T> take(std::span<const std::uint8_t>& bytes, std::size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
  return values;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("learned state: " + what);
}

std::uint64_t digest(const ModelTables& tables) {
  Bytes bytes;
  write(bytes, tables.hits);
  write(bytes, tables.trials);
  return xxh64(bytes);
}

Header header_of(std::span<const std::uint8_t> bytes, std::uint64_t start) {
  require(bytes.size() >= sizeof(Header), std::to_string(bytes.size()) + " bytes are too few for a header");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  require(header.magic == kMagic, "it does not begin with draftdM1");
  require(header.checksum == xxh64(bytes.subspan(kChecked)), "its checksum is wrong");
  const Header here;
  require(header.cells == here.cells && header.agreements == here.agreements && header.standings == here.standings &&
              header.knots == here.knots && header.start == start,
          "it is of another version of draftd, which counts other things");
  require(header.stored <= cells::kCount, std::to_string(header.stored) + " cells are more than there are");
  const std::size_t expected = sizeof(Header) + kWeights * sizeof(float) + header.stored * kPerCell;
  require(bytes.size() == expected,
          std::to_string(bytes.size()) + " bytes; its header says " + std::to_string(expected));
  return header;
}

}  // namespace

Bytes Model::save() const {
  const ModelTables start = Model().tables();
  const ModelTables tables = this->tables();
  std::vector<std::uint16_t> stored;
  std::vector<float> hits;
  std::vector<float> trials;
  for (std::uint32_t cell = cells::kKnown; cell < cells::kCount; ++cell) {
    if (tables.hits[cell] == start.hits[cell] && tables.trials[cell] == start.trials[cell]) continue;
    stored.push_back(static_cast<std::uint16_t>(cell));
    hits.push_back(tables.hits[cell]);
    trials.push_back(tables.trials[cell]);
  }
  Header header;
  header.start = digest(start);
  header.lessons = tables.lessons;
  header.stored = static_cast<std::uint32_t>(stored.size());

  Bytes bytes(sizeof(Header));
  bytes.reserve(sizeof(Header) + kWeights * sizeof(float) + stored.size() * kPerCell);
  write(bytes, tables.agreement);
  write(bytes, tables.standing);
  write(bytes, tables.correction);
  write(bytes, hits);
  write(bytes, trials);
  write(bytes, stored);
  std::memcpy(bytes.data(), &header, sizeof(Header));
  header.checksum = xxh64(std::span(bytes).subspan(kChecked));
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return bytes;
}

std::unique_ptr<Model> Model::load(std::span<const std::uint8_t> bytes) {
  ModelTables tables = Model().tables();
  const Header header = header_of(bytes, digest(tables));
  bytes = bytes.subspan(sizeof(Header));
  tables.lessons = header.lessons;
  tables.agreement = take<float>(bytes, tables.agreement.size());
  tables.standing = take<float>(bytes, tables.standing.size());
  tables.correction = take<float>(bytes, tables.correction.size());
  const auto hits = take<float>(bytes, header.stored);
  const auto trials = take<float>(bytes, header.stored);
  const auto stored = take<std::uint16_t>(bytes, header.stored);
  std::uint32_t next = cells::kKnown;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    require(stored[i] >= next && stored[i] < cells::kCount,
            "entry " + std::to_string(i) + " is of cell " + std::to_string(stored[i]) + ", not in [" +
                std::to_string(next) + ", " + std::to_string(cells::kCount) + ")");
    next = stored[i] + 1U;
    tables.hits[stored[i]] = hits[i];
    tables.trials[stored[i]] = trials[i];
  }
  return std::make_unique<Model>(tables);
}

}  // namespace draftd
