// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>
#include <penstock/device/concepts.hpp>

#include <condition_variable>
#include <mutex>

namespace penstock::inline v0_1 {

/// Binds the threads of a run to the processors, and gives them the nice, of `workers(n, {...})`. Each thread
/// does so itself, before it works; threads that it starts (of a storage, say) inherit both. The thread that
/// opens the run waits until all have, so that an error belongs to the opening.
///
/// Linux only: elsewhere, asking for either is an error.
class thread_place {
 public:
  explicit thread_place(const worker_options& wanted) noexcept : wanted_(wanted) {}

  /// Throws errc::argument for processors that this process may not use, and on systems without such calls.
  static void check(const worker_options& wanted);

  /// The options with the threads bound to processors near a device, unless the options say where: to those
  /// that the calling thread may use, if the workers are at most as many or `where.always`. `always` also has
  /// no more workers than those processors, unless the options say how many.
  [[nodiscard]] static run_options near(run_options options, const near_processors& where,
                                        std::uint64_t local_ranks);

  /// Called by each thread before it works.
  void enter() noexcept;
  /// Waits until so many threads have called `enter`; throws errc::argument if the system refused one of
  /// them.
  void await(unsigned threads);

 private:
  enum class refusal { none, processors, nice };

  [[nodiscard]] bool asks() const noexcept { return !wanted_.processors.empty() || wanted_.nice; }
  /// Of the calling thread; `code` is what the system said.
  [[nodiscard]] refusal apply(int& code) const noexcept;

  worker_options wanted_;
  std::mutex lock_;
  std::condition_variable changed_;
  unsigned entered_ = 0;
  refusal refused_ = refusal::none;
  int code_ = 0;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/thread_place.ipp>
#endif
