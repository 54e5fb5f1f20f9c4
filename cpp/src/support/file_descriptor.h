// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace draftd {

class FileDescriptor {
 public:
  // Takes what a system call gave; throws std::system_error that names the file if it gave none.
  FileDescriptor(int number, const std::string& path) : number_(number) {
    if (number < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  ~FileDescriptor() { ::close(number_); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace draftd
