#include "draftd/ring.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace draftd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostKept = 64 << 20;  // bytes that wait for room; then no more frames are taken
// Waits that usually end within this time are spun through, at most so long: to fall asleep and to be woken takes about
// as long.
constexpr std::chrono::nanoseconds kMostSpin = 50us;
constexpr std::size_t kMostOthers = 4;

constexpr RingEnd other(RingEnd end) { return end == RingEnd::kServer ? RingEnd::kClient : RingEnd::kServer; }

void relax() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Ring::Ring(std::shared_ptr<RingMemory> memory, int socket, RingEnd end, std::size_t longest_frame, bool spins)
    : memory_(std::move(memory)),
      socket_(socket),
      longest_frame_(longest_frame),
      spins_(spins),
      own_(memory_->state(end)),
      peer_(memory_->state(other(end))),
      outgoing_(memory_->lane_to(other(end))),
      incoming_(memory_->lane_to(end)),
      usual_wait_(kMostSpin) {}

Ring::~Ring() { ::close(socket_); }

bool Ring::send(std::span<const std::uint8_t> frame) {
  if (peer_is_gone_) throw RingBroken("the peer is gone");
  flush();
  if (unsent() >= kMostKept) return false;
  std::array<std::uint8_t, 4> length;
  const auto bytes = static_cast<std::uint32_t>(frame.size());
  std::memcpy(length.data(), &bytes, sizeof bytes);
  for (const std::span<const std::uint8_t> part : {std::span<const std::uint8_t>(length), frame}) {
    const std::size_t done = unsent() == 0 ? write(part) : 0;
    kept_.insert(kept_.end(), part.begin() + static_cast<std::ptrdiff_t>(done), part.end());
  }
  publish();
  return true;
}

void Ring::flush() {
  if (unsent() == 0) return;
  kept_begin_ += write(std::span(kept_).subspan(kept_begin_));
  publish();
  // What has been written goes, and its memory with it; no more is copied for that than was written.
  if (kept_begin_ > kept_.size() / 2) {
    kept_ = std::vector(kept_.begin() + static_cast<std::ptrdiff_t>(kept_begin_), kept_.end());
    kept_begin_ = 0;
  }
}

// As much as there is room for; the peer sees it when it is published.
std::size_t Ring::write(std::span<const std::uint8_t> bytes) {
  const std::size_t count = std::min<std::size_t>(bytes.size(), room());
  const std::size_t at = written_ % kLaneBytes;
  const std::size_t to_end = std::min(count, kLaneBytes - at);
  if (count > 0) {
    std::memcpy(outgoing_ + at, bytes.data(), to_end);
    std::memcpy(outgoing_, bytes.data() + to_end, count - to_end);
  }
  written_ += count;
  return count;
}

void Ring::publish() {
  // Sequentially consistent, as the peer's falling asleep is: either it sees this, or we see that it sleeps.
  own_.written.store(written_);
  if ((peer_.waits_for.load() & kBytes) != 0) ring_bell();
}

bool Ring::take(std::string& frame) {
  while (true) {
    const std::uint64_t there = waiting_bytes();  // looked at once: the next look may find anything
    if (header_bytes_ < sizeof header_) {
      if (there == 0) return false;
      const std::size_t count = std::min<std::uint64_t>(there, sizeof header_ - header_bytes_);
      read(header_ + header_bytes_, count);
      header_bytes_ += count;
      continue;
    }
    std::uint32_t length = 0;
    std::memcpy(&length, header_, sizeof length);
    if (length > longest_frame_) {
      throw RingBroken("a frame of " + std::to_string(length) + " bytes; at most " + std::to_string(longest_frame_));
    }
    const std::size_t before = frame_.size();
    if (before == length) {
      frame = std::move(frame_);
      frame_ = {};  // as long as it is: one long frame must not keep its memory for ever
      header_bytes_ = 0;
      return true;
    }
    if (there == 0) return false;
    const std::size_t count = std::min<std::uint64_t>(there, length - before);
    frame_.resize(before + count);  // memory for what has come, not for what is announced
    read(reinterpret_cast<std::uint8_t*>(frame_.data()) + before, count);
  }
}

// Copies out what is there.
void Ring::read(std::uint8_t* into, std::size_t count) {
  const std::size_t at = taken_ % kLaneBytes;
  const std::size_t to_end = std::min(count, kLaneBytes - at);
  std::memcpy(into, incoming_ + at, to_end);
  std::memcpy(into + to_end, incoming_, count - to_end);
  taken_ += count;
  own_.taken.store(taken_);
  // Not for every few bytes: the peer writes in large pieces.
  if ((peer_.waits_for.load() & kRoom) != 0 && waiting_bytes() <= kLaneBytes / 2) ring_bell();
}

std::uint64_t Ring::waiting_bytes() const {
  const std::uint64_t bytes = peer_.written.load() - taken_;
  if (bytes > kLaneBytes) throw RingBroken("the peer claims to have written more than there is room for");
  return bytes;
}

std::uint64_t Ring::room() const {
  const std::uint64_t bytes = written_ - peer_.taken.load();
  if (bytes > kLaneBytes) throw RingBroken("the peer claims to have taken what it did not get");
  return kLaneBytes - bytes;
}

bool Ring::is_ready(std::uint32_t wishes) const {
  return ((wishes & kBytes) != 0 && waiting_bytes() > 0) || ((wishes & kRoom) != 0 && room() >= kLaneBytes / 2);
}

Ring::Woken Ring::wait(std::uint32_t wishes, Clock::time_point until, std::span<const int> others) {
  if (is_ready(wishes)) return Woken::kReady;
  if (peer_is_gone_) throw RingBroken("the peer is gone");
  const Clock::time_point began = Clock::now();
  if (spins_ && usual_wait_ < kMostSpin && spin(wishes, std::min(until, began + kMostSpin))) {
    usual_wait_ = (3 * usual_wait_ + (Clock::now() - began)) / 4;
    return Woken::kReady;
  }
  const Woken woken = sleep(wishes, until, others);
  // A long wait counts as one of bounded length, so that a few short ones make up for it.
  usual_wait_ = (3 * usual_wait_ + std::min<std::chrono::nanoseconds>(Clock::now() - began, 4 * kMostSpin)) / 4;
  return woken;
}

bool Ring::spin(std::uint32_t wishes, Clock::time_point until) const {
  do {
    for (int turn = 0; turn < 32; ++turn) {
      if (is_ready(wishes)) return true;
      relax();
    }
  } while (Clock::now() < until);
  return false;
}

Ring::Woken Ring::sleep(std::uint32_t wishes, Clock::time_point until, std::span<const int> others) {
  std::array<pollfd, 1 + kMostOthers> polled{{{socket_, POLLIN, 0}}};
  const std::size_t count = std::min(others.size(), kMostOthers);
  for (std::size_t at = 0; at < count; ++at) polled[1 + at] = {others[at], POLLIN, 0};

  own_.waits_for.store(wishes);
  if (is_ready(wishes)) {  // it came before the peer could see that we sleep
    own_.waits_for.store(kNothing);
    return Woken::kReady;
  }
  timespec left{};
  if (until != Clock::time_point::max()) {
    const auto nanoseconds = std::max<std::chrono::nanoseconds>(0ns, until - Clock::now());
    left = {static_cast<std::time_t>(nanoseconds / 1s), static_cast<long>((nanoseconds % 1s).count())};
  }
  const int ready = ::ppoll(polled.data(), 1 + count, until == Clock::time_point::max() ? nullptr : &left, nullptr);
  const bool by_signal = ready < 0;
  own_.waits_for.store(kNothing);

  if (!by_signal && polled[0].revents != 0) hear_bell();
  if (peer_is_gone_ || is_ready(wishes)) return Woken::kReady;
  if (by_signal) return Woken::kBySignal;
  const bool by_other = std::any_of(polled.begin() + 1, polled.begin() + 1 + static_cast<std::ptrdiff_t>(count),
                                    [](const pollfd& one) { return one.revents != 0; });
  if (by_other) return Woken::kByOther;
  return ready == 0 ? Woken::kTimeIsUp : Woken::kReady;
}

void Ring::ring_bell() {
  // No room for one more means that the peer has not heard the last ones.
  if (::send(socket_, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) peer_is_gone_ = true;
}

void Ring::hear_bell() {
  std::array<char, 64> rings;
  const ssize_t heard = ::recv(socket_, rings.data(), rings.size(), MSG_DONTWAIT);
  if (heard == 0 || (heard < 0 && errno != EAGAIN && errno != EINTR)) peer_is_gone_ = true;
}

}  // namespace draftd
