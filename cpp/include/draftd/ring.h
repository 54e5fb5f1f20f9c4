// Frames between two processes of one host: a lane of shared memory each way, and a unix socket.
//
// A lane is a pipe of bytes: each frame with its length before it (u32), in pieces when the lane has no room for all
// of it. The socket is the bell and the life line: a byte in it wakes a peer that sleeps, its end is the peer's end.
// An eventfd would not do as a bell: who is given one can make the other's writes to it block.
//
// The memory is the peer's to write too, so nothing there is believed. Each end keeps its own positions; of the
// peer's it reads each once, and checks it. Frames are copied out before anybody looks at them. A peer that writes
// nonsense breaks its own ring and nothing else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace draftd {

// The ring is of no more use: the peer is gone, or does not keep to the layout.
class RingBroken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kLaneBytes = 1 << 20;  // a 128k-token prompt goes in whole

enum class RingEnd : std::uint8_t { kServer, kClient };

// What one end says; it alone writes here. Positions count bytes since the start.
struct alignas(64) RingState {
  std::atomic<std::uint64_t> written;    // into the lane to the peer
  std::atomic<std::uint64_t> taken;      // out of the lane from the peer
  std::atomic<std::uint32_t> waits_for;  // a RingWish: while it is set, the peer rings the bell
};

// Bits: what an end sleeps for.
enum RingWish : std::uint8_t { kNothing = 0, kBytes = 1, kRoom = 2 };

class RingMemory {
 public:
  // A new file without a name, of a size that nobody can change any more. The caller closes it.
  // Throws std::system_error where the system gives none.
  static int create();
  // Maps such a file, which may be closed then. Throws std::system_error, or RingBroken for any other kind of file.
  explicit RingMemory(int file);
  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  RingState& state(RingEnd end) const { return states_[static_cast<std::size_t>(end)]; }
  std::uint8_t* lane_to(RingEnd end) const { return lanes_ + kLaneBytes * static_cast<std::size_t>(end); }

 private:
  RingState* states_ = nullptr;
  std::uint8_t* lanes_ = nullptr;
};

// One end. Used by one thread at a time; whoever waits in it holds up nobody but itself.
class Ring {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Woken : std::uint8_t { kReady, kTimeIsUp, kByOther, kBySignal };

  // Takes the socket, a connected unix stream. `spins`: there is a processor to spare for short waits.
  Ring(std::shared_ptr<RingMemory> memory, int socket, RingEnd end, std::size_t longest_frame, bool spins);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Writes what there is room for and keeps the rest, which later calls write. False: too much is kept already.
  // Never waits. Throws RingBroken.
  bool send(std::span<const std::uint8_t> frame);
  // Writes what is kept, as far as there is room. Throws RingBroken.
  void flush();
  std::size_t unsent() const { return kept_.size() - kept_begin_; }

  // The next whole frame, if it is there. Never waits. Throws RingBroken.
  bool take(std::string& frame);

  // Until there is one of `wishes` (bits of RingWish), or one of `others`, file descriptors, can be read.
  // Throws RingBroken once the peer is gone and has left nothing.
  Woken wait(std::uint32_t wishes, Clock::time_point until, std::span<const int> others);

 private:
  std::size_t write(std::span<const std::uint8_t> bytes);
  void publish();
  void read(std::uint8_t* into, std::size_t count);
  std::uint64_t waiting_bytes() const;
  std::uint64_t room() const;
  bool is_ready(std::uint32_t wishes) const;
  bool spin(std::uint32_t wishes, Clock::time_point until) const;
  Woken sleep(std::uint32_t wishes, Clock::time_point until, std::span<const int> others);
  void ring_bell();
  void hear_bell();

  std::shared_ptr<RingMemory> memory_;
  int socket_;
  std::size_t longest_frame_;
  bool spins_;
  RingState& own_;
  RingState& peer_;
  std::uint8_t* outgoing_;
  const std::uint8_t* incoming_;
  std::uint64_t written_ = 0;  // as in own_, which the peer could change
  std::uint64_t taken_ = 0;
  bool peer_is_gone_ = false;
  std::vector<std::uint8_t> kept_;  // what found no room yet, from kept_begin_ on
  std::size_t kept_begin_ = 0;
  std::uint8_t header_[4];  // of the frame that comes in
  std::size_t header_bytes_ = 0;
  std::string frame_;
  std::chrono::nanoseconds usual_wait_;
};

}  // namespace draftd
