// Conversions between Python buffers and spans, with errors that name the argument.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "draftd/types.h"

namespace draftd::bindings {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

// For checks of every entry: `what()` makes up the message, only where it is needed.
template <std::invocable What>
void require(bool holds, const What& what) {
  if (!holds) throw std::invalid_argument(what());
}

// Anything that converts safely to a contiguous int32 array.
using TokenArray = pybind11::array_t<Token, pybind11::array::c_style>;

inline std::span<const Token> tokens_of(const TokenArray& array) {
  if (array.ndim() != 1) throw std::invalid_argument("tokens: expected one dimension");
  return {array.data(), static_cast<std::size_t>(array.size())};
}

inline void require_ids(std::span<const Token> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0) {
      throw std::invalid_argument("token id " + std::to_string(tokens[i]) + " at position " + std::to_string(i) +
                                  " is negative");
    }
  }
}

// A packed little-endian column, as it came off the wire.
template <typename T>
std::span<const T> column(const pybind11::bytes& packed, const char* name) {
  const std::string_view view = packed;
  if (view.size() % sizeof(T) != 0) {
    throw std::invalid_argument(std::string("column ") + name + ": " + std::to_string(view.size()) +
                                " bytes are no whole number of entries");
  }
  // The payload of a bytes object lies 32 bytes into an allocation that is aligned to 16.
  return {reinterpret_cast<const T*>(view.data()), view.size() / sizeof(T)};
}

inline std::span<const std::uint8_t> bytes_of(const pybind11::bytes& bytes) {
  return column<std::uint8_t>(bytes, "bytes");
}

// Of a ragged column: running ends of rows, the last of which is that of all values.
inline void require_ends(std::span<const std::uint32_t> ends, std::size_t values, const char* name) {
  std::uint32_t before = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    require(ends[row] >= before,
            [&] { return std::string("column ") + name + ": row " + std::to_string(row) + " ends before it begins"; });
    before = ends[row];
  }
  require(before == values, [&] {
    return std::string("column ") + name + " ends at " + std::to_string(before) + " of " + std::to_string(values) +
           " values";
  });
}

template <typename T>
pybind11::bytes packed(const std::vector<T>& values) {
  return pybind11::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace draftd::bindings
