// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<mpi.h>)
#error "penstock/integration/mpi.hpp needs MPI: link penstock::mpi"
#endif

#include <penstock/evaluation/parts.hpp>
#include <penstock/integration/detail/mpi_peers.hpp>
#include <penstock/order/world.hpp>

#include <mpi.h>

#include <map>
#include <optional>

/// Support for many processes under MPI: their ranks, checks that they agree, and stopping together.
///
/// All functions are collective: every process of the communicator calls them, in the same order. Waits have
/// a deadline: if a process has ended or is doing something else, the others throw `error(errc::stopped)`,
/// naming what they waited for, instead of hanging. The communicator is unusable after that: end the job.
/// Only the calling thread calls MPI, never a worker; MPI_THREAD_FUNNELED is enough, on the thread that
/// initialised MPI.
/// Throws `error(errc::argument)` if MPI is not running or the thread may not call it, and `error(errc::io)`
/// with MPI's own message if a call fails and the communicator returns errors (by default MPI ends the job).
///
///     MPI_Comm all = MPI_COMM_WORLD;
///     const world here = mpi::world_of(all);
///     const manifest listed = mpi::on_first_rank(all, [&] { return webdataset(shards).manifest(); });
///     const auto loader = webdataset(listed) |
///                         decode<field<"npy", npy<std::uint8_t>>, field<"cls", integer>> |
///                         shuffle(seed(7), window(shards_ahead)) | shard(here, replicate(copies)) |
///                         global_batch(global) | workers(threads);
///     mpi::agree(all, loader);
namespace penstock::inline v0_1::mpi {

/// The default time to wait for the other processes.
inline constexpr std::chrono::milliseconds default_timeout = std::chrono::minutes(10);

/// Waits until every process has reached this call; `what` completes the message `processes to <what>`.
inline void barrier(MPI_Comm comm, std::chrono::milliseconds deadline = default_timeout,
                    std::string_view what = "reach a barrier") {
  const detail::peers all(comm);
  auto nothing = std::make_unique<char>();
  MPI_Request request = MPI_REQUEST_NULL;
  detail::check(MPI_Ibarrier(comm, &request));
  all.wait(request, nothing, deadline, what);
}

/// The world of a communicator: rank and size are the communicator's, local rank and size count the processes
/// that share memory with this one, and nodes are numbered by their lowest ranks.
inline world world_of(MPI_Comm comm, std::chrono::milliseconds deadline = default_timeout) {
  const detail::peers all(comm);
  // Splitting has no deadline, so nobody starts before all processes are there.
  barrier(comm, deadline, "find out who shares a machine");
  MPI_Comm near = MPI_COMM_NULL;
  detail::check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
  const detail::peers local(near);
  const auto first =
      local.gather({static_cast<std::uint64_t>(all.rank)}, deadline, "report their ranks").front();
  MPI_Comm_free(&near);
  auto firsts = all.gather({first}, deadline, "report their machines");
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  world here;
  here.rank = static_cast<std::uint64_t>(all.rank);
  here.size = static_cast<std::uint64_t>(all.size);
  here.local_rank = static_cast<std::uint64_t>(local.rank);
  here.local_size = static_cast<std::uint64_t>(local.size);
  here.node =
      static_cast<std::uint64_t>(std::lower_bound(firsts.begin(), firsts.end(), first) - firsts.begin());
  here.nodes = firsts.size();
  here.launcher = "MPI";
  here.check();
  return here;
}

/// Throws on every process if one has failed: that process rethrows its own exception, and the others throw
/// an error of the same kind whose sentence starts with "process 2 failed: ". If several have failed, the
/// error quotes the lowest process.
///
/// Call it at points that every process reaches, with the exception each one caught, or null: a process that
/// threw on its own would leave the others waiting in the next collective call. Costs one reduction of 8
/// bytes.
///
///     auto batch = run.next();
///     mpi::stop_together(all, batch.failure);
///     if (!batch) break;
inline void stop_together(MPI_Comm comm, const std::exception_ptr& failure,
                          std::chrono::milliseconds deadline = default_timeout) {
  const detail::peers all(comm);
  const auto none = static_cast<std::uint64_t>(all.size);
  const std::uint64_t failed =
      all.least(failure ? static_cast<std::uint64_t>(all.rank) : none, deadline, "say whether they continue");
  if (failed == none) return;
  const int who = static_cast<int>(failed);
  const std::string words = all.broadcast(who, who == all.rank ? detail::words_of(failure) : std::string(),
                                          deadline, "learn why one stops");
  if (failure) std::rethrow_exception(failure);
  detail::throw_words(who, words);
}

/// Calls f() on every process. Returns its result on every process, or throws on every process: see
/// `stop_together`.
///
///     mpi::together(all, [&] {
///       if (where) save(checkpoint, *where, model);
///     });
template <class F>
auto together(MPI_Comm comm, F&& f, std::chrono::milliseconds deadline = default_timeout) {
  using result = std::invoke_result_t<F&>;
  if constexpr (std::is_void_v<result>) {
    const auto done = [&] {
      f();
      return true;
    };
    (void)together(comm, done, deadline);
  } else {
    std::exception_ptr failure;
    std::optional<result> made;
    try {
      made.emplace(f());
    } catch (...) {
      failure = std::current_exception();
    }
    stop_together(comm, failure, deadline);
    return std::move(*made);
  }
}

/// Calls f() on process 0 only, and returns its result on every process: process 0 lists a folder or a
/// bucket, and reads the indexes. The result is a `manifest`, a `state`, a text or a list of texts. If f
/// throws, all processes throw.
///
/// With a communicator of the processes of one machine, each machine lists its own copy; `agree` then checks
/// that the copies are equal.
template <class F>
auto on_first_rank(MPI_Comm comm, F&& f, std::chrono::milliseconds deadline = default_timeout) {
  using result = std::remove_cvref_t<std::invoke_result_t<F&>>;
  const detail::peers all(comm);
  std::exception_ptr failure;
  std::optional<result> made;
  std::string words;
  if (all.rank == 0) {
    try {
      made.emplace(f());
      words = "+" + detail::pack(*made);
    } catch (...) {
      failure = std::current_exception();
      words = "-" + detail::words_of(failure);
    }
  }
  words = all.broadcast(0, std::move(words), deadline, "get the result of process 0");
  if (failure) std::rethrow_exception(failure);
  if (words[0] == '-') detail::throw_words(0, words.substr(1));
  return made ? std::move(*made) : detail::unpack<result>(words.substr(1));
}

/// Gives a text of each process to all of them, in the order of their ranks: for `serve_metrics` and others
/// that know nothing of MPI. Each call is collective.
///
///     const auto served = serve_metrics(run, mpi::exchange(MPI_COMM_WORLD), {.port = port});
class exchange {
 public:
  explicit exchange(MPI_Comm comm, std::chrono::milliseconds deadline = default_timeout)
      : all_(comm), deadline_(deadline) {}

  [[nodiscard]] std::uint64_t rank() const noexcept { return static_cast<std::uint64_t>(all_.rank); }
  [[nodiscard]] std::vector<std::string> operator()(std::string mine) const {
    const auto said = all_.collect(0, std::move(mine), deadline_, "exchange texts");
    return detail::unpack<std::vector<std::string>>(
        all_.broadcast(0, detail::pack(said), deadline_, "exchange texts"));
  }

 private:
  detail::peers all_;
  std::chrono::milliseconds deadline_;
};

namespace detail {

/// The values that the processes report about themselves, one row each.
struct claims {
  enum column : std::size_t { rank, size, replica, replicas, dataset, sequence, epoch, step, columns };
  std::vector<std::uint64_t> all;

  [[nodiscard]] std::size_t count() const { return all.size() / columns; }
  [[nodiscard]] std::uint64_t at(std::size_t process, column c) const { return all[process * columns + c]; }

  /// The processes that differ from the majority; in a tie, the value of the lowest process counts as right.
  struct split {
    std::vector<std::size_t> others;
    std::size_t usual = 0;
  };
  [[nodiscard]] split differ_in(std::initializer_list<column> which) const {
    std::map<std::vector<std::uint64_t>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < count(); ++i) {
      std::vector<std::uint64_t> said;
      for (const column c : which) said.push_back(at(i, c));
      groups[said].push_back(i);
    }
    const auto* maximum = &groups.begin()->second;
    for (const auto& [said, who] : groups)
      if (who.size() > maximum->size() || (who.size() == maximum->size() && who[0] < maximum->front()))
        maximum = &who;
    split made;
    made.usual = maximum->front();
    for (const auto& [said, who] : groups)
      if (&who != maximum) made.others.insert(made.others.end(), who.begin(), who.end());
    std::sort(made.others.begin(), made.others.end());
    return made;
  }

  /// The error in the worlds; empty if ranks and replicas number the processes correctly.
  [[nodiscard]] std::string wrong_world() const {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> seen;
    for (std::size_t i = 0; i < count(); ++i) {
      const std::uint64_t ranks = at(i, size), copies = at(i, replicas);
      if (at(i, rank) >= ranks)
        return text(
            {"process ", i, " says that it is rank ", at(i, rank), " of ", ranks, "; they count from 0"});
      if (at(i, replica) >= copies || copies > count() || ranks > count() || ranks * copies != count())
        return text({"process ", i, " says that the world has ", ranks, " ranks",
                     copies == 1 ? std::string() : text({" of ", copies, " replicas"}),
                     ", but the communicator has ", count(),
                     " processes; start them all with one launcher, or use mpi::world_of"});
    }
    if (const split s = differ_in({size, replicas}); !s.others.empty())
      return text({list_of(s.others), " have ", at(s.others[0], replicas), " replicas of a rank, process ",
                   s.usual, " has ", at(s.usual, replicas), "; give all of them the same group size"});
    for (std::size_t i = 0; i < count(); ++i) {
      const auto [place, fresh] = seen.emplace(std::pair(at(i, rank), at(i, replica)), i);
      if (!fresh)
        return text({list_of({place->second, i}), " both say that they are rank ", at(i, rank),
                     at(i, replicas) == 1 ? std::string() : text({", replica ", at(i, replica)}), " of ",
                     at(i, size), "; give each its own rank"});
    }
    return {};
  }
};

template <class Plan>
void agree_on(MPI_Comm comm, const Plan& p, std::uint64_t epoch, std::uint64_t step,
              std::chrono::milliseconds deadline) {
  const peers all(comm);
  const world here = penstock::world_of(p);
  const claims said{all.gather({here.rank, here.size, here.replica, here.replicas, p.source().fingerprint(),
                                sequence_fingerprint(p), epoch, step},
                               deadline, "say which data they have")};
  const auto refuse = [](std::string_view words) { throw error(errc::argument, words); };
  if (const std::string words = said.wrong_world(); !words.empty()) refuse(words);
  if (const auto s = said.differ_in({claims::dataset}); !s.others.empty()) {
    std::string mine = "other samples";
    if constexpr (requires { p.source().describe(); }) mine = p.source().describe();
    const auto of = [&](std::size_t process) {
      return all.broadcast(static_cast<int>(process), mine, deadline, "say which data they have");
    };
    const std::string other = of(s.others[0]), usual = of(s.usual);
    refuse(text({list_of(s.others), " of ", all.size, " see other data than process ", s.usual, ": ", other,
                 "; process ", s.usual, " has ", usual,
                 "; look for old copies, or let one process list it (mpi::on_first_rank)"}));
  }
  if (const auto s = said.differ_in({claims::sequence}); !s.others.empty()) {
    refuse(text(
        {list_of(s.others), " of ", all.size, " read the data in another order than process ", s.usual,
         ": seeds, order stages, filters, tail or global batch differ; give all of them the same plan"}));
  }
  if (const auto s = said.differ_in({claims::epoch, claims::step}); !s.others.empty()) {
    const std::size_t one = s.others[0];
    refuse(
        text({list_of(s.others), " of ", all.size, " are not at the same step as process ", s.usual,
              ", which is at step ", said.at(s.usual, claims::step), " of epoch ",
              said.at(s.usual, claims::epoch), ": process ", one, " is at step ", said.at(one, claims::step),
              " of epoch ", said.at(one, claims::epoch), "; open all of them from one state"}));
  }
}

}  // namespace detail

/// Checks that the processes fit together, and otherwise throws one `error(errc::argument)` on every process,
/// with the same sentence naming the processes concerned: if the ranks (and replicas) of their plans' worlds
/// do not number the processes of the communicator, if two claim the same number, or if one has different
/// data or a different order.
///
/// For a run, it also compares the positions. Call it once before the first batch, and with the run wherever
/// a process may have been replaced.
template <class Plan>
  requires requires(const Plan& p) { p.source().fingerprint(); }
void agree(MPI_Comm comm, const Plan& p, std::chrono::milliseconds deadline = default_timeout) {
  detail::agree_on(comm, p, 0, 0, deadline);
}
template <class Run>
  requires requires(const Run& r) { r.plan().source().fingerprint(); }
void agree(MPI_Comm comm, const Run& r, std::chrono::milliseconds deadline = default_timeout) {
  const state where = r.state();
  detail::agree_on(comm, r.plan(), where.epoch, where.step, deadline);
}

/// Merges the states of all processes (see `merge`) on process `root`; returns nothing on the others. Members
/// of a group that get the same samples count once. Throws on every process if the states are not of one job
/// and one step.
inline std::optional<state> gather_states(MPI_Comm comm, const state& mine, int root = 0,
                                          std::chrono::milliseconds deadline = default_timeout) {
  const detail::peers all(comm);
  const auto texts = all.collect(root, to_string(mine), deadline, "give their states");
  return together(
      comm,
      [&]() -> std::optional<state> {
        if (all.rank != root) return std::nullopt;
        std::map<std::uint64_t, std::vector<state>> of_rank;
        for (const std::string& one : texts) {
          state s = state_from_string(one);
          auto& same = of_rank[s.rank];
          if (std::find(same.begin(), same.end(), s) == same.end()) same.push_back(std::move(s));
        }
        std::vector<state> different;
        for (auto& [rank, same] : of_rank)
          for (state& s : same) different.push_back(std::move(s));
        return merge(different);
      },
      deadline);
}

}  // namespace penstock::inline v0_1::mpi
