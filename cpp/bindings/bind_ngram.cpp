#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bind.h"
#include "draftd/ngram.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

template <typename T>
using Column = py::array_t<T, py::array::c_style>;

template <typename T>
std::span<const T> column_of(const Column<T>& array, std::size_t rows, const char* name) {
  require(array.ndim() == 1, std::string(name) + ": expected one dimension");
  const auto size = static_cast<std::size_t>(array.size());
  require(size == rows,
          std::string(name) + " has " + std::to_string(size) + " entries for " + std::to_string(rows) + " rows");
  return {array.data(), size};
}

template <typename T>
py::array_t<T> array_of(std::span<const T> values) {
  py::array_t<T> array(static_cast<py::ssize_t>(values.size()));
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

NgramBatch batch_of(const Column<std::uint64_t>& request, const Column<std::uint32_t>& start,
                    const Column<std::uint32_t>& token_end, const TokenArray& tokens,
                    const Column<std::uint32_t>& most) {
  const auto rows = static_cast<std::size_t>(request.size());
  const NgramBatch batch{column_of(request, rows, "request"), column_of(start, rows, "start"),
                         column_of(token_end, rows, "token_end"), tokens_of(tokens), column_of(most, rows, "most")};
  std::uint32_t before = 0;
  for (const std::uint32_t end : batch.token_end) {
    require(end >= before, "token_end: a row ends before it begins");
    before = end;
  }
  require(before == batch.tokens.size(), [&] {
    return "token_end ends at " + std::to_string(before) + " of " + std::to_string(batch.tokens.size()) + " tokens";
  });
  return batch;
}

std::pair<py::array_t<std::uint32_t>, py::array_t<Token>> propose(
    NgramTexts& texts, const Column<std::uint64_t>& request, const Column<std::uint32_t>& start,
    const Column<std::uint32_t>& token_end, const TokenArray& tokens, const Column<std::uint32_t>& most) {
  const NgramBatch batch = batch_of(request, start, token_end, tokens, most);
  thread_local NgramChains chains;
  {
    const py::gil_scoped_release release;
    texts.propose(batch, chains);
  }
  return {array_of(std::span<const std::uint32_t>(chains.node_end)), array_of(std::span<const Token>(chains.tokens))};
}

void forget(NgramTexts& texts, const Column<std::uint64_t>& requests) {
  const auto forgotten = column_of(requests, static_cast<std::size_t>(requests.size()), "requests");
  const py::gil_scoped_release release;
  texts.forget(forgotten);
}

py::array_t<Token> continuation(const TokenArray& text, std::size_t most, std::uint32_t shortest, std::uint32_t longest,
                                bool newest) {
  const NgramRule rule(shortest, longest, newest);
  const std::span<const Token> tokens = tokens_of(text);
  std::span<const Token> found;
  {
    const py::gil_scoped_release release;
    found = ngram_continuation(tokens, rule, most);
  }
  return array_of(found);
}

}  // namespace

void bind_ngram(py::module_& module) {
  py::class_<NgramTexts>(module, "NgramTexts")
      .def(py::init([](std::uint32_t shortest, std::uint32_t longest, bool newest) {
             return std::make_unique<NgramTexts>(NgramRule(shortest, longest, newest));
           }),
           py::kw_only(), py::arg("shortest"), py::arg("longest"), py::arg("newest"))
      .def("propose", &propose, py::arg("request"), py::arg("start"), py::arg("token_end"), py::arg("tokens"),
           py::arg("most"))
      .def("forget", &forget, py::arg("requests"))
      .def("memory_size", &NgramTexts::memory_size);
  module.def("ngram_continuation", &continuation, py::arg("text"), py::arg("most"), py::kw_only(), py::arg("shortest"),
             py::arg("longest"), py::arg("newest"));
}

}  // namespace draftd::bindings
