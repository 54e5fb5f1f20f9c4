// A vector of plain data that grows by a sixteenth. std::vector doubles, which
// at its worst halves the value of a byte-per-token budget; realloc moves the
// pages of large blocks instead of copying them, and so small a step costs no
// more than a large one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace draftd {

template <typename T>
class PodVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PodVector() = default;
  PodVector(const PodVector&) = delete;
  PodVector& operator=(const PodVector&) = delete;
  PodVector(PodVector&& other) noexcept { swap(other); }
  PodVector& operator=(PodVector&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PodVector() { std::free(data_); }

  void swap(PodVector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }

  // Grows by `count` elements of indeterminate value; returns the first.
  T* extend(std::size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    T* first = data_ + size_;
    size_ += count;
    return first;
  }

  void pop_back() { --size_; }

  std::size_t memory_size() const { return capacity_ * sizeof(T); }

 private:
  void grow(std::size_t needed) {
    const std::size_t wanted = capacity_ + capacity_ / 16 + 8;
    reallocate(wanted > needed ? wanted : needed);
  }
  void reallocate(std::size_t capacity) {
    void* moved = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace draftd
