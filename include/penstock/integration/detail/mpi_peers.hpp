// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<mpi.h>)
#error "penstock/integration/mpi.hpp needs MPI: link penstock::mpi"
#endif

#include <penstock/core/to_size.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/manifest.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <exception>
#include <thread>

namespace penstock::inline v0_1::mpi::detail {

using penstock::detail::append;
using penstock::detail::piece;
using penstock::detail::text;

inline void check(int code) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, words, &length);
  throw error(errc::io, {"MPI says: ", std::string_view(words, static_cast<std::size_t>(length))});
}

/// The processes of a communicator, checked to be reachable from this thread.
struct peers {
  MPI_Comm comm;
  int rank = 0, size = 0;

  explicit peers(MPI_Comm of) : comm(of) {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun == 0 || ended != 0)
      throw error(errc::argument,
                  "MPI is not running here: call this after MPI_Init_thread and before MPI_Finalize");
    if (of == MPI_COMM_NULL) throw error(errc::argument, "this process is not in the communicator");
    int level = 0, first_thread = 0;
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&first_thread);
    if (level < MPI_THREAD_SERIALIZED && first_thread == 0)
      throw error(
          errc::argument,
          "MPI was initialised for calls from one thread, and this is another; call it from the thread "
          "that called MPI_Init_thread");
    check(MPI_Comm_rank(comm, &rank));
    check(MPI_Comm_size(comm, &size));
  }
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(size); }

  /// Waits until an operation is done. `kept` is the memory that it reads and writes.
  template <class Kept>
  void wait(MPI_Request request, std::unique_ptr<Kept>& kept, std::chrono::milliseconds deadline,
            std::string_view what) const {
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned round = 0;; ++round) {
      int done = 0;
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done != 0) return;
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited >= deadline) {
        (void)kept.release();  // the operation cannot be cancelled, and may still write there
        throw error(errc::stopped,
                    {"process ", rank, " waited ", deadline.count(), " ms for all ", size, " processes to ",
                     what, "; one of them has ended or is doing something else: end the job"});
      }
      // If there are more processes than processors, a waiting process must let the others run.
      if (waited < std::chrono::microseconds(200))
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(round < 2000 ? 100 : 1000));
    }
  }

  /// The numbers of all processes, one process after another.
  [[nodiscard]] std::vector<std::uint64_t> gather(std::vector<std::uint64_t> mine,
                                                  std::chrono::milliseconds deadline,
                                                  std::string_view what) const {
    struct buffers {
      std::vector<std::uint64_t> mine, all;
    };
    auto kept = std::make_unique<buffers>();
    kept->mine = std::move(mine);
    kept->all.resize(kept->mine.size() * count());
    const int each = static_cast<int>(kept->mine.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(kept->mine.data(), each, MPI_UINT64_T, kept->all.data(), each, MPI_UINT64_T, comm,
                         &request));
    wait(request, kept, deadline, what);
    return std::move(kept->all);
  }

  /// The minimum of a number over all processes.
  [[nodiscard]] std::uint64_t least(std::uint64_t mine, std::chrono::milliseconds deadline,
                                    std::string_view what) const {
    struct numbers {
      std::uint64_t mine, all;
    };
    auto kept = std::make_unique<numbers>(numbers{mine, 0});
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallreduce(&kept->mine, &kept->all, 1, MPI_UINT64_T, MPI_MIN, comm, &request));
    wait(request, kept, deadline, what);
    return kept->all;
  }

  /// Sends a text from process `root` to all of them.
  [[nodiscard]] std::string broadcast(int root, std::string words, std::chrono::milliseconds deadline,
                                      std::string_view what) const {
    auto length = std::make_unique<std::uint64_t>(words.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(length.get(), 1, MPI_UINT64_T, root, comm, &request));
    wait(request, length, deadline, what);
    auto kept = std::make_unique<std::string>(std::move(words));
    kept->resize(penstock::detail::to_size(*length));
    constexpr std::size_t maximum = std::size_t{1} << 30;  // MPI counts with int
    for (std::size_t at = 0; at < kept->size(); at += maximum) {
      check(MPI_Ibcast(kept->data() + at, static_cast<int>(std::min(maximum, kept->size() - at)), MPI_BYTE,
                       root, comm, &request));
      wait(request, kept, deadline, what);
    }
    return std::move(*kept);
  }

  /// Collects the text of every process on process `root`; empty on the others.
  [[nodiscard]] std::vector<std::string> collect(int root, std::string words,
                                                 std::chrono::milliseconds deadline,
                                                 std::string_view what) const {
    struct buffers {
      std::string mine, all;
      std::vector<int> lengths, begins;
    };
    auto kept = std::make_unique<buffers>();
    kept->mine = std::move(words);
    std::uint64_t total = 0;
    for (const std::uint64_t length : gather({kept->mine.size()}, deadline, what)) {
      if (length > 0x7fffffffu - total)
        throw error(errc::limit, {"the texts of ", size,
                                  " processes are more than 2 GiB together; keep one "
                                  "in a file for each process"});
      kept->begins.push_back(static_cast<int>(total));
      kept->lengths.push_back(static_cast<int>(length));
      total += length;
    }
    kept->all.resize(penstock::detail::to_size(rank == root ? total : 0));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Igatherv(kept->mine.data(), static_cast<int>(kept->mine.size()), MPI_BYTE, kept->all.data(),
                       kept->lengths.data(), kept->begins.data(), MPI_BYTE, root, comm, &request));
    wait(request, kept, deadline, what);
    std::vector<std::string> made;
    for (std::size_t i = 0; rank == root && i < count(); ++i) {
      made.push_back(kept->all.substr(static_cast<std::size_t>(kept->begins[i]),
                                      static_cast<std::size_t>(kept->lengths[i])));
    }
    return made;
  }
};

/// The form in which a process sends its failure to the others: the error code, and the sentence.
inline std::string words_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& e) {
    const std::string_view line = e.what();  // with its facts, without the leading name
    return std::to_string(static_cast<int>(e.code())) + " " + std::string(line.substr(line.find(' ') + 1));
  } catch (const std::exception& e) {
    return std::to_string(static_cast<int>(errc::stopped)) + " " + e.what();
  } catch (...) {
    return std::to_string(static_cast<int>(errc::stopped)) + " an exception without words";
  }
}
[[noreturn]] inline void throw_words(int process, const std::string& words) {
  const auto code = static_cast<errc>(words.empty() ? 0 : words[0] - '0');  // codes are below 10
  throw error(code, {"process ", process, " failed: ", std::string_view(words).substr(2)});
}
static_assert(static_cast<int>(errc::stopped) < 10, "a kind is sent as one digit");

// The values that one process can send to the others, as text.
inline std::string pack(const std::string& value) { return value; }
inline std::string pack(const manifest& value) { return to_string(value); }
inline std::string pack(const state& value) { return to_string(value); }
inline std::string pack(const std::vector<std::string>& value) {
  std::string made;
  for (const std::string& one : value) append(made, {one.size(), " ", one});
  return made;
}
template <class T>
T unpack(const std::string& words) {
  if constexpr (std::same_as<T, manifest>) {
    return manifest_from_string(words);
  } else if constexpr (std::same_as<T, state>) {
    return state_from_string(words);
  } else if constexpr (std::same_as<T, std::string>) {
    return words;
  } else {
    T made;
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t blank = words.find(' ', at);
      const std::size_t length = std::stoull(words.substr(at, blank - at));
      made.push_back(words.substr(blank + 1, length));
      at = blank + 1 + length;
    }
    return made;
  }
}

/// `1`, `1 and 3`, `1, 2 and 3`; if there are many, only the first few.
inline std::string list_of(const std::vector<std::size_t>& processes) {
  std::string words = processes.size() == 1 ? "process " : "processes ";
  const std::size_t shown = std::min<std::size_t>(processes.size(), 8);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == processes.size();
    append(words, {i == 0 ? "" : last ? " and " : ", ", processes[i]});
  }
  if (shown < processes.size()) append(words, {" and ", processes.size() - shown, " more"});
  return words;
}

}  // namespace penstock::inline v0_1::mpi::detail
