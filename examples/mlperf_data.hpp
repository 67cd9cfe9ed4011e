// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlperf_workloads.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/tar_writer.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The data set of mlperf_storage, and what reading it takes at least.

/// A file that is open for reading.
class open_file {
 public:
  explicit open_file(std::string path)
      : path_(std::move(path)), at_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (at_ < 0) fail("open");
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() { ::close(at_); }

  /// Reads the file to its end, and returns its length.
  std::uint64_t read_through(std::vector<char>& block) const {
    std::uint64_t bytes = 0;
    for (;;) {
      const auto got = ::pread(at_, block.data(), block.size(), static_cast<off_t>(bytes));
      if (got == 0) return bytes;
      if (got > 0)
        bytes += static_cast<std::uint64_t>(got);
      else if (errno != EINTR)
        fail("read");
    }
  }
  /// Writes what is not on the disk yet, and drops the file from the page cache.
  void drop() const {
    if (::fdatasync(at_) != 0) fail("flush");
    if (const int failure = ::posix_fadvise(at_, 0, 0, POSIX_FADV_DONTNEED); failure != 0) {
      errno = failure;
      fail("drop from the page cache");
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::runtime_error(std::string("cannot ") + what + " " + path_ + ": " + std::strerror(errno));
  }

  std::string path_;
  int at_;
};

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct data_set {
  std::filesystem::path folder;
  std::vector<std::string> files;
  std::uint64_t samples = 0, bytes = 0;

  void drop_from_cache() const {
    for (const std::string& path : files) open_file(path).drop();
  }
};

/// A record as MLPerf makes it: a matrix of random bytes, whose two lengths are drawn.
class record_maker {
 public:
  record_maker(const scaled_workload& w, std::uint64_t file)
      : source_(10 + file),  // 10 is DLIO's seed
        side_(std::floor(std::sqrt(w.record_bytes())),
              std::max(1e-9, w.of.record_stdev * w.scale / (2 * std::sqrt(w.record_bytes())))) {}

  [[nodiscard]] std::vector<std::byte> make() {
    const std::uint64_t rows = length(), columns = length();
    values_.resize(rows * columns);
    const std::uint64_t key = source_();
    for (std::size_t i = 0; i < values_.size(); i += 8) {
      const std::uint64_t eight = penstock::mix64(key + i);
      std::memcpy(values_.data() + i, &eight, std::min<std::size_t>(8, values_.size() - i));
    }
    return penstock::npy_bytes<std::uint8_t>(penstock::extents(rows, columns), values_);
  }

 private:
  std::uint64_t length() { return static_cast<std::uint64_t>(std::max(1.0, std::round(side_(source_)))); }

  std::mt19937_64 source_;
  std::normal_distribution<double> side_;
  std::vector<std::uint8_t> values_;
};

inline void write_data_file(const std::filesystem::path& path, const scaled_workload& w,
                            std::uint64_t number) {
  record_maker records(w, number);
  if (path.extension() == ".tar") {
    penstock::tar_writer out(path.string(), {.index = true});
    for (std::uint64_t i = 0; i < w.of.samples_per_file; ++i)
      out.write(std::to_string(i), {{"npy", penstock::bytes_view(records.make())}});
    out.close();
    return;
  }
  const std::vector<std::byte> bytes = records.make();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

/// Makes the data set in a folder of its own below `where`, or finds it there. A folder that has its name is
/// complete. `objects`: as it is read from an object store.
inline data_set make_data(const std::filesystem::path& where, const scaled_workload& w, std::uint64_t files,
                          bool objects) {
  namespace fs = std::filesystem;
  const bool npy = w.of.name == "unet3d" && !objects;
  data_set made;
  char name[100];
  std::snprintf(name, sizeof name, "%s-%llu-%s-scale-%.9g", std::string(w.of.name).c_str(),
                static_cast<unsigned long long>(files), objects ? "objects" : "files", w.scale);
  made.folder = where / name;
  const char* const suffix = npy ? ".npy" : ".tar";
  if (!fs::exists(made.folder)) {
    const fs::path partial = where / (std::string(name) + ".partial");
    fs::remove_all(partial);
    fs::create_directories(partial);
    for (std::uint64_t i = 0; i < files; ++i) write_data_file(partial / (std::to_string(i) + suffix), w, i);
    fs::rename(partial, made.folder);
  }
  made.samples = files * w.of.samples_per_file;
  for (std::uint64_t i = 0; i < files; ++i) {
    made.files.push_back((made.folder / (std::to_string(i) + suffix)).string());
    made.bytes += fs::file_size(made.files.back());
  }
  return made;
}

struct bare_reading {
  double bytes_per_second = 0;
  unsigned threads = 0;
};

/// Reads all files to their ends, with pread and nothing else, once for each number of threads. Returns the
/// fastest: no loader can be faster with the same system calls.
inline bare_reading read_bare(const data_set& data, unsigned read_threads, bool cold) {
  bare_reading best;
  for (const unsigned threads : {1u, read_threads, 4 * read_threads}) {
    if (cold) data.drop_from_cache();
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> bytes{0};
    std::vector<std::exception_ptr> failed(threads);
    const auto begin = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> readers;
      for (unsigned t = 0; t < threads; ++t)
        readers.emplace_back([&, t] {
          try {
            std::vector<char> block(std::size_t{1} << 20);
            for (std::size_t i = next++; i < data.files.size(); i = next++)
              bytes += open_file(data.files[i]).read_through(block);
          } catch (...) {
            failed[t] = std::current_exception();
          }
        });
    }
    const double rate = static_cast<double>(bytes) / seconds_since(begin);
    for (const std::exception_ptr& e : failed)
      if (e) std::rethrow_exception(e);
    if (rate > best.bytes_per_second) best = {rate, threads};
  }
  return best;
}
