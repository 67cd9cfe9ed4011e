// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Run on several processes by tests/mpi.cmake: each process runs all test cases in one fixed order, and
// the expected values are equal on all or computed from the rank.

#include <penstock/integration/mpi.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/steps.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;
using namespace std::chrono_literals;

namespace {

/// All processes; MPI is initialised by the first test that calls this, and finalised at exit.
MPI_Comm everyone() {
  static const bool begun = [] {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    std::atexit([] { MPI_Finalize(); });
    return level >= MPI_THREAD_FUNNELED;
  }();
  REQUIRE(begun);
  return MPI_COMM_WORLD;
}
std::uint64_t rank() {
  int value = 0;
  MPI_Comm_rank(everyone(), &value);
  return static_cast<std::uint64_t>(value);
}
std::uint64_t size() {
  int value = 0;
  MPI_Comm_size(everyone(), &value);
  return static_cast<std::uint64_t>(value);
}

const std::vector<int> data{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};

auto loader_of(const ps::world& here, std::uint64_t seed = 7, std::size_t samples = 20) {
  return ps::from(std::vector<int>(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(samples))) |
         ps::shuffle(ps::seed(seed)) | ps::shard(here) | ps::global_batch(6);
}
ps::world world_with(std::uint64_t r, std::uint64_t n) {
  ps::world here;
  here.rank = r;
  here.size = n;
  return here;
}

/// The error that f throws, which must have one sentence on every process; with `from` also checks the
/// kind.
template <class F>
std::string same_sentence(F&& f, ps::errc code = ps::errc::argument) {
  std::string said = "nothing";
  try {
    f();
  } catch (const ps::error& e) {
    CHECK(e.code() == code);
    said = e.message();
  }
  const std::string first = ps::mpi::on_first_rank(
      everyone(), [&] { return said; }, 20s);
  CHECK(said == first);
  return said;
}

}  // namespace

TEST_CASE("integration/mpi: before MPI is initialised, one sentence") {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun != 0) return;  // an earlier test has already initialised MPI
  CHECK_THROWS_WITH(ps::mpi::barrier(MPI_COMM_WORLD, 1s), penstock_test::contains("MPI_Init_thread"));
}

TEST_CASE("integration/mpi: the world of a communicator") {
  const auto here = ps::mpi::world_of(everyone(), 20s);
  CHECK(here.rank == rank());
  CHECK(here.size == size());
  CHECK(here.local_rank == rank());  // one machine
  CHECK(here.local_size == size());
  CHECK(here.node == 0);
  CHECK(here.nodes == 1);
  CHECK(here.launcher == "MPI");
  // The launcher's own variables agree; a program started without a launcher is alone.
  if (size() > 1) {
    CHECK(ps::world::from_environment().rank == here.rank);
    CHECK(ps::world::from_environment().size == here.size);
  }
  CHECK_THROWS_WITH(ps::mpi::world_of(MPI_COMM_NULL), penstock_test::contains("not in the communicator"));
}

TEST_CASE("integration/mpi: MPI is called by its own thread") {
  int level = 0;
  static_cast<void>(everyone());
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) return;
  auto other = std::async(std::launch::async, [] { ps::mpi::barrier(MPI_COMM_WORLD, 1s); });
  CHECK_THROWS_WITH(other.get(), penstock_test::contains("calls from one thread"));
}

TEST_CASE("integration/mpi: all processes get what the first one finds") {
  int calls = 0;
  const auto names = ps::mpi::on_first_rank(
      everyone(),
      [&] {
        ++calls;
        return std::vector<std::string>{"a b", "", "3 \n", std::string(70'000, 'x')};
      },
      20s);
  CHECK(calls == (rank() == 0 ? 1 : 0));
  CHECK(names == std::vector<std::string>{"a b", "", "3 \n", std::string(70'000, 'x')});
  CHECK(ps::mpi::on_first_rank(
            everyone(), [] { return std::string(); }, 20s)
            .empty());
  CHECK(ps::mpi::on_first_rank(
            everyone(), [] { return std::vector<std::string>(); }, 20s)
            .empty());
  ps::state at;
  at.step = 9;
  CHECK(ps::mpi::on_first_rank(
            everyone(), [&] { return at; }, 20s) == at);
}

TEST_CASE("integration/mpi: one process lists the shards, and all read them") {
  const penstock_test::temp_dir dir;
  const std::string folder = ps::mpi::on_first_rank(
      everyone(), [&] { return (dir / "shards").string(); }, 20s);
  const auto shards = ps::mpi::on_first_rank(
      everyone(),
      [&] {
        std::filesystem::create_directory(folder);
        for (int i = 0; i < 3; ++i)
          penstock_test::raw_tar()
              .member("a" + std::to_string(i) + ".txt", "1")
              .member("b" + std::to_string(i) + ".txt", "2")
              .end()
              .save(folder + "/s-" + std::to_string(i) + ".tar");
        return ps::webdataset(folder + "/s-{0..2}.tar").manifest();
      },
      20s);
  const ps::webdataset source(shards);
  CHECK(source.size() == 6);
  const auto reader = source.connect();
  CHECK(reader.key(3) == "b1");
  ps::mpi::barrier(everyone(), 20s);  // process 0 removes the folder at the end
}

TEST_CASE("integration/mpi: a failure of the first process is thrown on all") {
  const std::string said = same_sentence(
      [] {
        try {
          ps::mpi::on_first_rank(
              everyone(),
              []() -> ps::manifest {
                throw ps::error(ps::errc::missing, "there are no shards").in_file("x-*.tar");
              },
              20s);
        } catch (const ps::error& e) {
          if (rank() != 0) {
            CHECK(e.message() == "process 0 failed: there are no shards [file x-*.tar]");
            throw;
          }
          CHECK(e.message() == "there are no shards");
          throw ps::error(e.code(), "process 0 failed: there are no shards [file x-*.tar]");
        }
      },
      ps::errc::missing);
  CHECK_THAT(said, penstock_test::contains("x-*.tar"));
}

TEST_CASE("integration/mpi: a failing process ends all, and no other cause does") {
  ps::mpi::stop_together(everyone(), nullptr, 20s);
  for (std::uint64_t who = 0; who < size(); ++who) {
    const auto fail = [&] {
      if (rank() == who) throw std::runtime_error("the disk is full");
      if (rank() == who + 1) throw ps::error(ps::errc::io, "and this one too");
      return 5;
    };
    std::string said;
    try {
      static_cast<void>(ps::mpi::together(everyone(), fail, 20s));
    } catch (const std::exception& e) {
      said = e.what();
    }
    if (rank() == who)
      CHECK(said == "the disk is full");
    else if (rank() == who + 1)
      CHECK(said == "penstock: and this one too");
    else
      CHECK(said == "penstock: process " + std::to_string(who) + " failed: the disk is full");
  }
  CHECK(ps::mpi::together(
            everyone(), [] { return rank() + 1; }, 20s) == rank() + 1);
  ps::mpi::together(
      everyone(), [] {}, 20s);
}

TEST_CASE("integration/mpi: matching processes agree") {
  const auto loader = loader_of(ps::mpi::world_of(everyone(), 20s));
  ps::mpi::agree(everyone(), loader, 20s);
  auto run = loader.open();
  ps::mpi::agree(everyone(), run, 20s);
  if (size() % 2 == 0) {
    ps::mpi::agree(everyone(), loader_of(world_with(rank(), size()).replicated(2)), 20s);
    ps::mpi::agree(everyone(), loader_of(world_with(rank(), size()).model_parallel(1, 2)), 20s);
  }
  // Any numbering is fine as long as all numbers occur.
  ps::mpi::agree(everyone(), loader_of(world_with(size() - 1 - rank(), size())), 20s);
}

TEST_CASE("integration/mpi: different data, order, number or place is one sentence on all processes") {
  const auto refused = [](const auto& p) {
    return same_sentence([&] { ps::mpi::agree(everyone(), p, 20s); });
  };
  const auto here = world_with(rank(), size());
  CHECK_THAT(refused(loader_of(world_with(0, size() + 1))),
             penstock_test::contains("the communicator has " + std::to_string(size()) + " processes"));
  if (size() == 1) return;
  const std::uint64_t last = size() - 1;
  const std::string name = "process " + std::to_string(size() == 2 ? 1 : last);
  SECTION("two that claim the same number") {
    const std::string said = refused(loader_of(world_with(rank() == last ? 0 : rank(), size())));
    CHECK_THAT(said, penstock_test::contains("processes 0 and " + std::to_string(last)) &&
                         penstock_test::contains("both say that they are rank 0"));
  }
  SECTION("each alone, as without a launcher") {
    CHECK_THAT(refused(loader_of({})), penstock_test::contains("says that the world has 1 ranks"));
  }
  SECTION("different data") {
    CHECK_THAT(refused(loader_of(here, 7, rank() == last ? 19 : 20)),
               penstock_test::contains(name + " of ") &&
                   penstock_test::contains("see other data than process 0") &&
                   penstock_test::contains("19 samples") && penstock_test::contains("20 samples"));
  }
  SECTION("a different order") {
    CHECK_THAT(refused(loader_of(here, rank() == last ? 8 : 7)),
               penstock_test::contains(name + " of ") && penstock_test::contains("another order"));
  }
  SECTION("the odd one is named, also if it is the first") {
    if (size() < 3) return;
    CHECK_THAT(refused(loader_of(here, rank() == 0 ? 8 : 7)), penstock_test::contains("process 0 of "));
  }
  SECTION("a different place in the sequence") {
    const auto loader = loader_of(here);
    auto run = loader.open();
    static_cast<void>(run.next());
    if (rank() == last) static_cast<void>(run.next());
    CHECK_THAT(refused(run), penstock_test::contains(name) && penstock_test::contains("step 1 of epoch 0") &&
                                 penstock_test::contains("step 2 of epoch 0"));
  }
  SECTION("a process that comes back with another world, in the middle of a run") {
    const auto loader = loader_of(here);
    auto run = loader.open();
    static_cast<void>(run.next());
    const auto other = loader_of(world_with(rank(), size() + 1));
    auto back = rank() == last ? other.open(run.state()) : loader.open(run.state());
    CHECK_THAT(refused(back),
               penstock_test::contains("process " + std::to_string(last) + " says that the world has " +
                                       std::to_string(size() + 1) + " ranks"));
  }
  SECTION("groups of different sizes") {
    if (size() != 4) return;
    const auto part = rank() == last ? here.replicated(4) : here.replicated(2);
    CHECK_THAT(refused(loader_of(part)), penstock_test::contains("replicas"));
  }
}

TEST_CASE("integration/mpi: the states of all processes become one") {
  const auto here = world_with(rank(), size());
  SECTION("of an elastic plan, that of one") {
    const auto loader = loader_of(here);
    auto run = loader.open();
    static_cast<void>(run.next());
    const auto merged = ps::mpi::gather_states(everyone(), run.state(), 0, 20s);
    CHECK(merged.has_value() == (rank() == 0));
    if (merged) CHECK(merged->step == 1);
  }
  SECTION("on any process") {
    const int root = static_cast<int>(size() - 1);
    CHECK(ps::mpi::gather_states(everyone(), loader_of(here).open().state(), root, 20s).has_value() ==
          (rank() == size() - 1));
  }
  SECTION("of another plan, all of them") {
    const auto loader = ps::from(data) | ps::shuffle(ps::seed(7)) | ps::shard(here) |
                        ps::filter([](int x) { return x % 3 != 0; }) | ps::batch(2) | ps::steps(4);
    auto run = loader.open();
    static_cast<void>(run.next());
    const auto merged = ps::mpi::gather_states(everyone(), run.state(), 0, 20s);
    // The text is what goes into a file; every process opens that file.
    const auto at = ps::mpi::on_first_rank(
        everyone(), [&] { return *merged; }, 20s);
    CHECK(at.ranks.size() == (size() == 1 ? 0 : size()));
    auto again = loader.open(at);
    const auto next = run.next(), redone = again.next();
    REQUIRE(static_cast<bool>(next));
    REQUIRE(static_cast<bool>(redone));
    const auto a = next.value->values(), b = redone.value->values();
    CHECK(std::vector<int>(a.begin(), a.end()) == std::vector<int>(b.begin(), b.end()));
  }
  SECTION("members of a group count once") {
    if (size() % 2 != 0) return;
    const auto merged =
        ps::mpi::gather_states(everyone(), loader_of(here.replicated(2)).open().state(), 0, 20s);
    if (rank() == 0) CHECK(merged->world == size() / 2);
  }
  SECTION("of different steps, none") {
    if (size() == 1) return;
    const auto loader = loader_of(here);
    auto run = loader.open();
    if (rank() == size() - 1) static_cast<void>(run.next());
    try {
      static_cast<void>(ps::mpi::gather_states(everyone(), run.state(), 0, 20s));
      FAIL("states of different steps were merged");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::state);
      CHECK_THAT(std::string(e.message()), penstock_test::contains("at step 1 of epoch 0"));
      if (rank() != 0) CHECK_THAT(std::string(e.message()), penstock_test::contains("process 0 failed: "));
    }
  }
}

TEST_CASE("integration/mpi: a missing process is waited for no longer than the timeout") {
  if (size() == 1) return;
  MPI_Comm own = MPI_COMM_NULL;  // an abandoned call leaves its communicator unusable
  MPI_Comm_dup(everyone(), &own);
  if (rank() != 0) {
    try {
      ps::mpi::barrier(own, 200ms, "begin epoch 3");
      FAIL("a barrier without process 0");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::stopped);
      CHECK_THAT(std::string(e.message()), penstock_test::contains("waited 200 ms") &&
                                               penstock_test::contains("to begin epoch 3") &&
                                               penstock_test::contains("end the job"));
    }
  }
  ps::mpi::barrier(everyone(), 20s);
  if (rank() == 0) {  // so that nothing is pending when MPI is finalised
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(own, &request);
    for (int done = 0, tries = 0; done == 0 && tries < 100; ++tries) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(1ms);
    }
  }
  ps::mpi::barrier(everyone(), 20s);
}
