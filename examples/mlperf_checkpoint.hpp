// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlperf_data.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Checkpoints: many writers save a part each and flush it to the disk; then all parts leave the page cache
// and are loaded. A part is a tar shard whose samples are pieces of up to 16 MiB.

struct checkpoint_times {
  double save = 0, load = 0;  ///< seconds
};

inline constexpr std::size_t checkpoint_piece = std::size_t{16} << 20;

/// Calls f(part) for each part, in a thread each, and returns how long they took together.
template <class F>
double for_each_part(std::uint64_t parts, F f) {
  std::vector<std::exception_ptr> failures(parts);
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t part = 0; part < parts; ++part)
      threads.emplace_back([&, part] {
        try {
          f(part);
        } catch (...) {
          failures[part] = std::current_exception();
        }
      });
  }
  const double took = seconds_since(begin);
  for (const std::exception_ptr& e : failures)
    if (e) std::rethrow_exception(e);
  return took;
}

inline checkpoint_times save_and_load(const std::filesystem::path& folder, std::uint64_t part_bytes,
                                      std::uint64_t parts) {
  namespace ps = penstock;
  std::filesystem::create_directories(folder);
  std::vector<std::byte> state(std::min<std::uint64_t>(part_bytes, checkpoint_piece));
  for (std::size_t i = 0; i + 8 <= state.size(); i += 8) {
    const std::uint64_t eight = ps::mix64(i);
    std::memcpy(state.data() + i, &eight, 8);
  }
  const auto path = [&](std::uint64_t part) { return (folder / (std::to_string(part) + ".tar")).string(); };

  checkpoint_times took;
  took.save = for_each_part(parts, [&](std::uint64_t part) {
    ps::tar_writer out(path(part), {.index = true});
    for (std::uint64_t at = 0; at < part_bytes; at += state.size())
      out.write(
          std::to_string(at),
          {{"bin", ps::bytes_view(state.data(), std::min(part_bytes - at, std::uint64_t{state.size()}))}});
    out.close();  // which flushes the file
  });
  for (std::uint64_t part = 0; part < parts; ++part) open_file(path(part)).drop();
  took.load = for_each_part(parts, [&](std::uint64_t part) {
    const auto pieces = ps::webdataset(ps::file({path(part).c_str()}, {.access = ps::file_access::read})) |
                        ps::decode<ps::field<"bin", ps::identity>> | ps::batch(1, ps::ragged) |
                        ps::workers(1);
    std::uint64_t loaded = 0;
    for (auto&& b : pieces.epoch(0)) {
      const auto piece = ps::get<"bin">(b)[0];
      if (!std::equal(piece.begin(), piece.begin() + std::min<std::ptrdiff_t>(8, std::ssize(piece)),
                      state.begin()))
        throw std::runtime_error(path(part) + " does not hold what was saved");
      loaded += piece.size();
    }
    if (loaded != part_bytes) throw std::runtime_error(path(part) + " does not hold all that was saved");
  });
  std::filesystem::remove_all(folder);
  return took;
}
