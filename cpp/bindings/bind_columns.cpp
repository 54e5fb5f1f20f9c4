// A client's columns: tokens on their way out, tails on their way in.
#include <Python.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bind.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

constexpr Token kInvalidToken = -1;        // stands for an id that 32 bits don't hold
constexpr std::uint32_t kIds = 1U << 31U;  // of a vocabulary of unknown size

// A list or tuple of what `iterable` gives. Throws TypeError for what is none.
py::object sequence_of(py::handle iterable) {
  PyObject* items = PySequence_Fast(iterable.ptr(), "not iterable");
  if (items == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(items);
}

// Throws TypeError for what is no integer, of Python's kind or numpy's.
Token token_of(PyObject* item) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(item));
  if (!number) throw py::error_already_set();
  int overflow = 0;
  const long long id = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  const bool fits = overflow == 0 && id >= std::numeric_limits<Token>::min() && id <= std::numeric_limits<Token>::max();
  return fits ? static_cast<Token>(id) : kInvalidToken;
}

std::pair<py::bytes, py::bytes> pack_tokens(py::handle rows) {
  std::vector<Token> tokens;
  std::vector<std::uint32_t> ends;
  // Sizes are looked at each time: an integer that is no int runs code of its own.
  const py::object all = sequence_of(rows);
  for (Py_ssize_t row = 0; row < PySequence_Fast_GET_SIZE(all.ptr()); ++row) {
    const py::object items = sequence_of(PySequence_Fast_GET_ITEM(all.ptr(), row));
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(items.ptr()); ++at) {
      tokens.push_back(token_of(PySequence_Fast_GET_ITEM(items.ptr(), at)));
    }
    ends.push_back(static_cast<std::uint32_t>(tokens.size()));
  }
  return {packed(tokens), packed(ends)};
}

void require_entries(const py::bytes& packed, std::size_t entries, std::size_t bytes_each, const char* name) {
  const std::size_t bytes = bytes_of(packed).size();
  require(bytes == entries * bytes_each, [&] {
    return std::string("column ") + name + " has " + std::to_string(bytes) + " bytes for " + std::to_string(entries) +
           " entries";
  });
}

void check_tails(const py::bytes& epoch, const py::bytes& base, const py::bytes& status, const py::bytes& reason,
                 const py::bytes& kind, const py::bytes& node_end, const py::bytes& tokens, const py::bytes& parents,
                 const py::bytes& survival, const py::bytes& source, std::uint32_t vocabulary_size) {
  const std::size_t rows = bytes_of(status).size();
  const std::size_t nodes = bytes_of(source).size();
  require_entries(epoch, rows, sizeof(std::uint32_t), "epoch");
  require_entries(base, rows, sizeof(std::uint32_t), "base");
  require_entries(reason, rows, sizeof(std::uint8_t), "reason");
  require_entries(kind, rows, sizeof(std::uint8_t), "kind");
  require_entries(node_end, rows, sizeof(std::uint32_t), "node_end");
  require_entries(tokens, nodes, sizeof(Token), "tokens");
  require_entries(parents, nodes, sizeof(std::int16_t), "parents");
  require_entries(survival, nodes, sizeof(float), "survival");
  const auto ends = column<std::uint32_t>(node_end, "node_end");
  require_ends(ends, nodes, "node_end");

  const auto ids = column<Token>(tokens, "tokens");
  const auto above = column<std::int16_t>(parents, "parents");
  const std::uint32_t limit = vocabulary_size == 0 ? kIds : std::min(vocabulary_size, kIds);
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    for (std::size_t node = first; node < end; ++node) {
      require(ids[node] >= 0 && std::cmp_less(ids[node], limit), [&] {
        return "token id " + std::to_string(ids[node]) + ", of a vocabulary of " + std::to_string(limit);
      });
      require(above[node] >= -1 && std::cmp_less(above[node], node - first), [&] {
        return "node " + std::to_string(node - first) + " of a row has parent " + std::to_string(above[node]) +
               ", which does not come before it";
      });
    }
    first = end;
  }
}

}  // namespace

void bind_columns(py::module_& module) {
  module.def("pack_tokens", &pack_tokens, py::arg("rows"));
  module.def("check_tails", &check_tails, py::arg("epoch"), py::arg("base"), py::arg("status"), py::arg("reason"),
             py::arg("kind"), py::arg("node_end"), py::arg("tokens"), py::arg("parents"), py::arg("survival"),
             py::arg("source"), py::arg("vocabulary_size"));
}

}  // namespace draftd::bindings
