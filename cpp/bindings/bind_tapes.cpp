#include "arrays.h"
#include "bind.h"
#include "draftd/engine.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

// As packed columns, ready for the wire.
struct Tapes {
  py::bytes window_end, token_end, tokens, corpus, version, reader, reader_epoch, reads, reads_version;
  std::uint64_t news;
};

Tapes tapes(Engine& engine, std::uint64_t verifier, const py::bytes& request, const py::bytes& epoch,
            std::uint32_t windows, std::uint64_t news) {
  const auto requests = column<std::uint32_t>(request, "request");
  const auto epochs = column<std::uint32_t>(epoch, "epoch");
  require(requests.size() == epochs.size(), "columns request and epoch differ in length");
  thread_local TapeColumns tapes;
  {
    const py::gil_scoped_release release;
    engine.tapes(verifier, requests, epochs, windows, news, tapes);
  }
  return {packed(tapes.window_end),    packed(tapes.token_end),
          packed(tapes.tokens),        packed(tapes.corpus),
          packed(tapes.version),       packed(tapes.reader),
          packed(tapes.reader_epoch),  packed(tapes.reads),
          packed(tapes.reads_version), tapes.news};
}

}  // namespace

void bind_tapes(py::module_& module, py::class_<Engine>& engine) {
  py::class_<Tapes>(module, "Tapes")
      .def_readonly("window_end", &Tapes::window_end)
      .def_readonly("token_end", &Tapes::token_end)
      .def_readonly("tokens", &Tapes::tokens)
      .def_readonly("corpus", &Tapes::corpus)
      .def_readonly("version", &Tapes::version)
      .def_readonly("reader", &Tapes::reader)
      .def_readonly("reader_epoch", &Tapes::reader_epoch)
      .def_readonly("reads", &Tapes::reads)
      .def_readonly("reads_version", &Tapes::reads_version)
      .def_readonly("news", &Tapes::news);
  engine.def("tapes", &tapes, py::arg("verifier"), py::arg("request"), py::arg("epoch"), py::arg("windows"),
             py::arg("news"));
}

}  // namespace draftd::bindings
