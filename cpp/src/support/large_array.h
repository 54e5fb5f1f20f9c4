// An array of plain data for random access, zeros at first: on large pages
// where the system has them, since otherwise the translation of addresses costs
// as much as the memory. It goes back to the system with the object.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace draftd {

// Zeroed memory. Throws std::bad_alloc.
class LargePages {
 public:
  explicit LargePages(std::size_t bytes);
  ~LargePages();
  LargePages(LargePages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  LargePages& operator=(LargePages&&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

template <typename T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit LargeArray(std::size_t size) : pages_(size * sizeof(T)), size_(size) {}

  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* data() const { return static_cast<T*>(pages_.data()); }
  std::size_t size() const { return size_; }
  std::span<T> all() { return {data(), size_}; }
  std::span<const T> all() const { return {data(), size_}; }

 private:
  LargePages pages_;
  std::size_t size_;
};

}  // namespace draftd
