#include "bind.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "draftd/index.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

struct Level {
  std::uint32_t length;
  std::uint64_t total;
  std::uint32_t distinct;
  std::vector<std::tuple<Token, std::uint32_t, std::uint32_t>> continuations;
};

Level level_of(const Index& index, Cursor cursor) {
  std::vector<Continuation> followers(index.degree(cursor.state));
  index.continuations(cursor.state, followers);
  std::sort(followers.begin(), followers.end(), [](const Continuation& a, const Continuation& b) {
    return a.count != b.count ? a.count > b.count : a.last > b.last;
  });
  Level level{cursor.length, 0, static_cast<std::uint32_t>(followers.size()), {}};
  for (const Continuation& follower : followers) {
    level.total += follower.count;
    level.continuations.emplace_back(follower.token, follower.count, follower.last);
  }
  return level;
}

std::vector<Level> match(const Index& index, const TokenArray& context) {
  Cursor cursor = index.match(tokens_of(context));
  std::vector<Level> levels{level_of(index, cursor)};
  while (cursor.state != kRoot) {
    cursor = index.shorter(cursor);
    levels.push_back(level_of(index, cursor));
  }
  return levels;
}

std::vector<std::pair<Token, std::uint32_t>> frequent_tokens(const Index& index) {
  std::vector<std::pair<Token, std::uint32_t>> ranked;
  for (const FrequentToken& frequent : index.frequent_tokens()) ranked.emplace_back(frequent.token, frequent.count);
  return ranked;
}

}  // namespace

void bind_index(py::module_& module) {
  py::class_<Level>(module, "Level")
      .def_readonly("length", &Level::length)
      .def_readonly("total", &Level::total)
      .def_readonly("distinct", &Level::distinct)
      .def_readonly("continuations", &Level::continuations);

  py::class_<Index, std::shared_ptr<Index>>(module, "Index")
      .def(py::init<>())
      .def(
          "append",
          [](Index& index, const TokenArray& array) {
            const std::span<const Token> tokens = tokens_of(array);
            require_ids(tokens);
            const py::gil_scoped_release release;
            index.append(tokens);
          },
          py::arg("tokens"))
      .def("end_document", &Index::end_document)
      .def("match", &match, py::arg("context"))
      .def("frequent_tokens", &frequent_tokens)
      .def_property_readonly("tokens", &Index::tokens)
      .def_property_readonly("documents", &Index::documents)
      .def_property_readonly("states", &Index::states)
      .def_property_readonly("edges", &Index::edges)
      .def("memory_size", &Index::memory_size)
      .def("check_integrity", &Index::check_integrity)
      .def("__repr__", [](const Index& index) {
        return "<Index: " + std::to_string(index.tokens()) + " tokens in " + std::to_string(index.documents()) +
               " documents, " + std::to_string(index.memory_size()) + " bytes>";
      });
}

}  // namespace draftd::bindings
