#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrays.h"
#include "bind.h"
#include "draftd/ring.h"

namespace py = pybind11;

namespace draftd::bindings {
namespace {

constexpr std::size_t kLongCopy = 1 << 16;  // bytes from which on Python's lock is not held
constexpr double kLongestWait = 1e9;        // seconds; beyond, there is no limit

py::bytes bytes_like(std::string_view frame) {
  if (frame.size() < kLongCopy) return {frame.data(), frame.size()};
  auto bytes =
      py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(frame.size())));
  if (!bytes) throw py::error_already_set();
  char* into = PyBytes_AS_STRING(bytes.ptr());
  {
    const py::gil_scoped_release release;  // nobody else knows the object yet
    std::memcpy(into, frame.data(), frame.size());
  }
  return bytes;
}

Ring::Clock::time_point after(double seconds) {
  if (!(seconds < kLongestWait)) return Ring::Clock::time_point::max();
  return Ring::Clock::now() + std::chrono::duration_cast<Ring::Clock::duration>(std::chrono::duration<double>(seconds));
}

class PyRing {
 public:
  PyRing(int memory, int socket, bool server, std::size_t longest_frame, bool spins)
      : ring_(std::make_unique<Ring>(std::make_shared<RingMemory>(memory), socket,
                                     server ? RingEnd::kServer : RingEnd::kClient, longest_frame, spins)) {}

  bool send(const py::bytes& frame) {
    const auto bytes = bytes_of(frame);
    if (bytes.size() < kLongCopy) return ring().send(bytes);
    Ring& ring = this->ring();
    const py::gil_scoped_release release;
    return ring.send(bytes);
  }

  std::optional<py::bytes> receive(double timeout, const std::vector<int>& others) {
    Ring& ring = this->ring();
    std::string frame;
    const bool taken = wait(timeout, others, [&]() -> std::optional<std::uint32_t> {
      ring.flush();
      if (ring.take(frame)) return std::nullopt;
      return kBytes | (ring.unsent() > 0 ? kRoom : kNothing);
    });
    if (!taken) return std::nullopt;
    return bytes_like(frame);
  }

  bool flush(double timeout, const std::vector<int>& others) {
    Ring& ring = this->ring();
    return wait(timeout, others, [&]() -> std::optional<std::uint32_t> {
      ring.flush();
      if (ring.unsent() == 0) return std::nullopt;
      return kRoom;
    });
  }

  std::size_t unsent() { return ring().unsent(); }
  void close() { ring_.reset(); }

 private:
  Ring& ring() {
    if (!ring_) throw RingBroken("the ring is closed");
    return *ring_;
  }

  // Until `attempt` succeeds; until then it says what to wait for before the next one. False: the time is up, or one
  // of `others` wants attention.
  template <typename Attempt>
  bool wait(double timeout, const std::vector<int>& others, const Attempt& attempt) {
    auto wishes = attempt();
    if (!wishes) return true;
    if (!(timeout > 0)) return false;  // who only looks pays for no look at the socket
    const auto until = after(timeout);
    while (true) {
      Ring::Woken woken = Ring::Woken::kReady;
      {
        const py::gil_scoped_release release;
        while (wishes && woken == Ring::Woken::kReady) {
          woken = ring_->wait(*wishes, until, others);
          if (woken == Ring::Woken::kReady) wishes = attempt();
        }
      }
      if (!wishes) return true;
      if (woken != Ring::Woken::kBySignal) return false;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }

  std::unique_ptr<Ring> ring_;
};

}  // namespace

void bind_ring(py::module_& module) {
  py::register_local_exception<RingBroken>(module, "RingBroken", PyExc_ConnectionError);
  module.def("create_ring_memory", &RingMemory::create);
  py::class_<PyRing>(module, "Ring", py::release_gil_before_calling_cpp_dtor())
      .def(py::init<int, int, bool, std::size_t, bool>(), py::arg("memory"), py::arg("socket"), py::kw_only(),
           py::arg("server"), py::arg("longest_frame"), py::arg("spins"))
      .def("send", &PyRing::send, py::arg("frame"))
      .def("receive", &PyRing::receive, py::arg("timeout"), py::arg("others") = std::vector<int>())
      .def("flush", &PyRing::flush, py::arg("timeout"), py::arg("others") = std::vector<int>())
      .def_property_readonly("unsent", &PyRing::unsent)
      .def("close", &PyRing::close);
}

}  // namespace draftd::bindings
