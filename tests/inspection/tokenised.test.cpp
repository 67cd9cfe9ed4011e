// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/inspection/tokenised.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/workers.hpp>

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"
#include "support/temp_dir.hpp"
#include "support/token_bytes.hpp"

namespace tokenised_test {

namespace ps = penstock;
namespace fs = std::filesystem;
using penstock_test::contains;
using penstock_test::error_of;
using penstock_test::temp_dir;

namespace {

using token = std::uint16_t;
using tokens = std::vector<std::uint32_t>;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
std::size_t files_in(const temp_dir& dir) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir.path()), {}));
}
/// A document of (x mod 7) x 5 tokens.
tokens document(int x) {
  tokens made;
  for (int i = 0; i < x % 7 * 5; ++i) made.push_back(static_cast<std::uint32_t>(x * 3 + i) % 60'000);
  return made;
}
std::vector<int> numbers(int n, int first = 0) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(first + i);
  return all;
}
/// The files by definition.
template <class T = token>
std::pair<std::string, std::string> expected(const std::vector<int>& from, unsigned code = 8) {
  penstock_test::byte_vector bin;
  std::vector<std::vector<std::uint32_t>> lengths;
  for (const int x : from) {
    const tokens all = document(x);
    for (const std::uint32_t one : all) penstock_test::put<T>(bin, one);
    lengths.push_back({static_cast<std::uint32_t>(all.size())});
  }
  const auto idx = penstock_test::megatron(lengths, code, sizeof(T));
  return {std::string(reinterpret_cast<const char*>(bin.data()), bin.size()),
          std::string(reinterpret_cast<const char*>(idx.data()), idx.size())};
}
std::pair<std::string, std::string> pair_of(const std::string& prefix) {
  return {read(prefix + ".bin"), read(prefix + ".idx")};
}
constexpr ps::tokenised_options small{.part_tokens = 500};

// ThreadSanitizer ends a child that starts threads.
#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_THREADS_IN_CHILDREN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PENSTOCK_THREADS_IN_CHILDREN 0
#endif
#endif
#ifndef PENSTOCK_THREADS_IN_CHILDREN
#define PENSTOCK_THREADS_IN_CHILDREN 2
#endif
constexpr unsigned workers_in_child = PENSTOCK_THREADS_IN_CHILDREN;

}  // namespace

TEST_CASE("inspection/tokenised: writes Megatron's files, the same for any number of workers") {
  const auto source = ps::from(numbers(1000));
  for (const unsigned workers : {0u, 1u, 3u}) {
    for (const std::uint64_t part : {std::uint64_t{60}, std::uint64_t{500}, std::uint64_t{1} << 24}) {
      const temp_dir dir;
      const std::string prefix = (dir / "x").string();
      const auto docs = ps::tokenised<token>(source | ps::map(document) | ps::workers(workers), "t", prefix,
                                             {.part_tokens = part});
      INFO(workers << " workers, parts of " << part);
      CHECK(pair_of(prefix) == expected(numbers(1000)));
      CHECK(docs.size() == 1000);
      CHECK(docs.lengths()[13] == 30);
      CHECK(files_in(dir) == 3);
    }
  }
}

TEST_CASE("inspection/tokenised: reads back as it was, by other sources, too") {
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  const auto source = ps::from(numbers(300));
  const auto docs = ps::tokenised<std::int32_t>(source | ps::map(document), "t", prefix + ".bin");
  CHECK(pair_of(prefix) == expected<std::int32_t>(numbers(300), 4));
  int next = 0;
  for (auto&& b : (docs | ps::batch(7, ps::ragged)).epoch(0))
    for (const auto one : b.values()) {
      const tokens want = document(next++);
      REQUIRE(std::equal(one.begin(), one.end(), want.begin(), want.end()));
    }
  CHECK(next == 300);
  CHECK(ps::megatron_tokens<std::int32_t>(prefix, ps::token_window<8>{}).tokens() == docs.tokens());
  // the lengths are for plans of the source, too
  const auto lengths = ps::open_derived<std::uint64_t>(prefix + ".penstock-values");
  CHECK(lengths.dataset() == source.fingerprint());
  CHECK(lengths[6] == 30);
  std::size_t placed = 0;
  for (auto&& b : (docs | ps::shuffle(ps::seed(1)) |
                   ps::pack(docs.lengths(), 16, {.overlong = ps::overlong::split}) | ps::batch(4))
                      .epoch(0)) {
    const auto view = b.values();
    for (const auto id : view.document_ids()) placed += id >= 0 ? 1u : 0u;
  }
  CHECK(placed == docs.tokens());
}

TEST_CASE("inspection/tokenised: fields of records, and types of tokens") {
  const temp_dir dir;
  using sample = ps::record<ps::field<"name", int>, ps::field<"txt", std::vector<std::int64_t>>>;
  const auto plan = ps::from(numbers(50)) | ps::map([](int x) {
                      const tokens all = document(x);
                      return sample(x, std::vector<std::int64_t>(all.begin(), all.end()));
                    });
  const std::string prefix = (dir / "x").string();
  CHECK(ps::tokenised<token, "txt">(plan, "t", prefix).size() == 50);
  CHECK(pair_of(prefix) == expected(numbers(50)));
}

TEST_CASE("inspection/tokenised: tokenises once, and then opens the files") {
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  const auto source = ps::from(numbers(100));
  std::atomic<int> calls{0};
  const auto plan = source | ps::map([&](int x) {
                      ++calls;
                      return document(x);
                    });
  const auto first = ps::tokenised<token>(plan, "t", prefix);
  CHECK(calls == 100);
  CHECK(ps::tokenised<token>(plan, "t", prefix).fingerprint() == first.fingerprint());
  CHECK(calls == 100);
  CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan, "u", prefix); }),
             contains("is called 't' and not 'u'"));
  CHECK_THAT(error_of([&] { (void)ps::tokenised<std::int32_t>(plan, "t", prefix); }),
             contains("another type was asked for") && contains("x.idx"));
  CHECK_THAT(error_of([&] { (void)ps::tokenised<std::int16_t>(plan, "t", prefix); }),
             contains("another sign"));
  CHECK(calls == 100);
  CHECK(pair_of(prefix) == expected(numbers(100)));
}

TEST_CASE("inspection/tokenised: files of another dataset, or damaged ones, are made again or an error") {
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  const auto make = [&](int first, bool rebuild) {
    return ps::tokenised<token>(ps::from(numbers(80, first)) | ps::map(document), "t", prefix,
                                {.rebuild = rebuild, .part_tokens = 100});
  };
  (void)make(0, true);
  CHECK_THAT(error_of([&] { (void)make(1, false); }), contains("another state of it"));
  CHECK(pair_of(prefix) == expected(numbers(80)));
  const auto old = ps::megatron_documents<token>(prefix);
  CHECK(make(1, true).fingerprint() != old.fingerprint());
  const auto good = expected(numbers(80, 1));
  CHECK(pair_of(prefix) == good);
  const auto check = [&] {
    CHECK_THAT(error_of([&] { (void)make(1, false); }), contains("rebuild"));
    CHECK(make(1, true).size() == 80);
    CHECK(pair_of(prefix) == good);
    CHECK(files_in(dir) == 3);
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{40}, good.second.size() - 1}) {
    std::string bad = good.second;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write(prefix + ".idx", bad);
    check();
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{17}, good.second.size() - 1}) {
    write(prefix + ".idx", good.second.substr(0, size));
    check();
  }
  write(prefix + ".bin", good.first + "x");
  check();
  write(prefix + ".penstock-values", "PENSTVALx");
  check();
  for (const char* const lost : {".bin", ".idx"}) {
    fs::remove(prefix + lost);
    CHECK(make(1, false).size() == 80);  // nothing was there that is made again
    CHECK(pair_of(prefix) == good);
  }
}

TEST_CASE("inspection/tokenised: the files of others are left alone") {
  const temp_dir dir;
  const auto plan = ps::from(numbers(80)) | ps::map(document);
  for (const char* const ending : {".bin", ".idx"}) {
    const std::string prefix = (dir / "only").string() + (ending + 1);
    write(prefix + ending, "mine");
    CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan, "t", prefix); }),
               contains("not made by tokenised") && contains(prefix + ending));
    CHECK(read(prefix + ending) == "mine");
  }
  CHECK(files_in(dir) == 2);
  write(dir / "x.penstock-values", "my thesis");
  CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan, "t", (dir / "x").string()); }),
             contains("this is not a derived index"));
  CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan, "", (dir / "y").string()); }),
             contains("must have a name"));
  CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan, "t", (dir / "none/x").string()); }),
             contains("cannot create"));
  CHECK(files_in(dir) == 3);
  // a path is no pattern
  CHECK(ps::tokenised<token>(plan, "t", (dir / "{a,b}*").string()).size() == 80);
}

TEST_CASE("inspection/tokenised: a token that does not fit, with its sample") {
  const temp_dir dir;
  write(dir / "corpus.txt", "1\n2\n70000\n4\n");
  const auto plan = ps::lines((dir / "corpus.txt").string()) | ps::map([](std::string_view line) {
                      return std::vector<std::int64_t>{std::stoll(std::string(line))};
                    });
  const std::string prefix = (dir / "x").string();
  CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan, "t", prefix); }),
             contains("token 70000 does not fit") && contains("corpus.txt:3") && contains("65535"));
  CHECK_FALSE(fs::exists(prefix + ".bin"));
  CHECK_FALSE(fs::exists(prefix + ".idx"));
  CHECK(ps::tokenised<std::int32_t>(plan, "t", prefix).lengths().size() == 4);
  CHECK(files_in(dir) == 4);
}

TEST_CASE("inspection/tokenised: a bad sample is its error, and what is before it is kept") {
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  const auto source = ps::from(numbers(1000));
  std::atomic<int> bad{700}, lowest{1000};
  const auto plan = source | ps::map([&](int x) {
                      if (x == bad) throw ps::error(ps::errc::format, "no text");
                      for (int seen = lowest; x < seen && !lowest.compare_exchange_weak(seen, x);) {
                      }
                      return document(x);
                    });
  for (const unsigned workers : {0u, 2u}) {
    bad = workers == 0 ? 700 : 900;
    CHECK_THAT(error_of([&] { (void)ps::tokenised<token>(plan | ps::workers(workers), "t", prefix); }),
               contains("no text"));
    CHECK_FALSE(fs::exists(prefix + ".idx"));
    CHECK(files_in(dir) == (workers == 0 ? 1u : 2u));  // parts
    if (workers != 0) CHECK(lowest >= 660);
    lowest = 1000;
  }
  bad = -1;
  CHECK(ps::tokenised<token>(plan, "t", prefix).size() == 1000);
  CHECK(lowest >= 860);
  CHECK(pair_of(prefix) == expected(numbers(1000)));
  CHECK(files_in(dir) == 3);
}

TEST_CASE("inspection/tokenised: killed at any moment, the next process goes on") {
  const penstock_test::deadline guard("tokenised, killed");
  const auto source = ps::from(numbers(2000));
  for (const unsigned workers : {0u, workers_in_child}) {
    const temp_dir dir;
    const std::string prefix = (dir / "x").string();
    for (const int last : {0, 300, 301, 1200, 1999}) {
      const int code = penstock_test::in_child([&] {
        (void)ps::tokenised<token>(source | ps::map([last](int x) {
                                     if (x == last) ::kill(::getpid(), SIGKILL);
                                     return document(x);
                                   }) | ps::workers(workers),
                                   "t", prefix, small);
        return 0;
      });
      CHECK(code == 1000 + SIGKILL);
      CHECK_FALSE(fs::exists(prefix + ".bin"));
      CHECK_FALSE(fs::exists(prefix + ".idx"));
    }
    std::atomic<int> first{2000};
    const auto docs =
        ps::tokenised<token>(source | ps::map([&](int x) {
                               for (int seen = first; x < seen && !first.compare_exchange_weak(seen, x);) {
                               }
                               return document(x);
                             }),
                             "t", prefix, small);
    CHECK(first > (workers == 0 ? 1900 : 500));  // workers are ahead of what is written
    CHECK(docs.size() == 2000);
    CHECK(pair_of(prefix) == expected(numbers(2000)));
    CHECK(files_in(dir) == 3);
  }
}

TEST_CASE("inspection/tokenised: killed by a timer, while it joins and removes, too") {
  const penstock_test::deadline guard("tokenised, killed by a timer");
  const auto source = ps::from(numbers(400));
  const auto good = expected(numbers(400));
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  int killed = 0;
  for (int i = 0; i < 60; ++i) {
    const int code = penstock_test::in_child([&] {
      ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
      const itimerval soon{{}, {0, 500 + 1700 * (i % 17)}};
      if (::setitimer(ITIMER_REAL, &soon, nullptr) != 0) return 2;
      (void)ps::tokenised<token>(source | ps::map(document) | ps::workers(0), "t", prefix,
                                 {.part_tokens = 200});
      return 0;
    });
    CHECK((code == 0 || code == 1000 + SIGKILL));
    killed += code == 0 ? 0 : 1;
    if (fs::exists(prefix + ".idx")) CHECK(pair_of(prefix) == good);  // never half of a pair
    if (code == 0)
      for (const auto& one : fs::directory_iterator(dir.path())) fs::remove(one.path());
  }
  CHECK(killed > 0);
  CHECK(ps::tokenised<token>(source | ps::map(document), "t", prefix).size() == 400);
  CHECK(pair_of(prefix) == good);
  CHECK(files_in(dir) == 3);
}

TEST_CASE("inspection/tokenised: parts that are damaged, missing or of something else are made again") {
  const auto source = ps::from(numbers(400));
  const auto stop_at = [&](const std::string& prefix, int last, const char* name = "t") {
    (void)error_of([&] {
      (void)ps::tokenised<token>(source | ps::map([last](int x) {
                                   if (x == last) throw ps::error(ps::errc::format, "stop");
                                   return document(x);
                                 }) | ps::workers(0),
                                 name, prefix, small);
    });
  };
  const temp_dir dir;
  const std::string prefix = (dir / "x").string(), part = prefix + ".penstock-part-1";
  const auto check = [&] {
    CHECK(ps::tokenised<token>(source | ps::map(document), "t", prefix, small).size() == 400);
    CHECK(pair_of(prefix) == expected(numbers(400)));
    CHECK(files_in(dir) == 3);
    for (const auto& one : fs::directory_iterator(dir.path())) fs::remove(one.path());
  };
  stop_at(prefix, 300);
  REQUIRE(fs::exists(part));
  const std::string good = read(part);
  for (const std::size_t at : {std::size_t{0}, good.size() / 2, good.size() - 129, good.size() - 128,
                               good.size() - 90, good.size() - 1}) {
    stop_at(prefix, 300);
    std::string bad = read(part);
    bad[at] = static_cast<char>(bad[at] ^ 4);
    write(part, bad);
    check();
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{127}, good.size() - 1}) {
    stop_at(prefix, 300);
    write(part, good.substr(0, size));
    check();
  }
  stop_at(prefix, 300);
  fs::remove(part);
  check();
  stop_at(prefix, 300, "another");
  check();
  stop_at(prefix, 300);
  write(part + ".tmp-1-2", "what a killed process had written");
  write(prefix + ".idx.tmp-1-2", "what a killed process had written");
  check();
  // killed when the tokens were joined, and when the index was there
  stop_at(prefix, 300);
  write(prefix + ".bin", "tokens");
  check();
  (void)ps::tokenised<token>(source | ps::map(document), "t", prefix, small);
  write(prefix + ".penstock-part-0", "a part");
  check();
}

TEST_CASE("inspection/tokenised: a full disk is an error, and no half of a pair is left") {
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  const auto source = ps::from(numbers(3000));
  for (const rlim_t maximum : {rlim_t{0}, rlim_t{100}, rlim_t{2000}, rlim_t{30'000}}) {
    const int code = penstock_test::in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{maximum, maximum};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
      try {
        (void)ps::tokenised<token>(source | ps::map(document) | ps::workers(0), "t", prefix, small);
      } catch (const ps::error& e) {
        return e.code() == ps::errc::io && std::string(e.what()).find("cannot write") != std::string::npos
                   ? 0
                   : 3;
      }
      return 1;
    });
    INFO("a file may have " << maximum << " bytes");
    CHECK(code == 0);
    CHECK_FALSE(fs::exists(prefix + ".bin"));
    CHECK_FALSE(fs::exists(prefix + ".idx"));
  }
  CHECK(ps::tokenised<token>(source | ps::map(document), "t", prefix, small).size() == 3000);
  CHECK(pair_of(prefix) == expected(numbers(3000)));
  CHECK(files_in(dir) == 3);
}

TEST_CASE("inspection/tokenised: an empty source is an error, documents without tokens are not") {
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  CHECK_THAT(error_of([&] {
               (void)ps::tokenised<token>(ps::from(std::vector<int>{}) | ps::map(document), "t", prefix);
             }),
             contains("no samples"));
  CHECK(files_in(dir) == 0);
  const auto docs = ps::tokenised<token>(ps::from({0, 7, 14}) | ps::map(document), "t", prefix);
  CHECK(docs.size() == 3);
  CHECK(docs.tokens() == 0);
  CHECK(ps::tokenised<token>(ps::from({0, 7, 14}) | ps::map(document), "t", prefix).size() == 3);
}

TEST_CASE("inspection/tokenised: of several threads and processes one makes the files") {
  const penstock_test::deadline guard("tokenised in many threads");
  const temp_dir dir;
  const std::string prefix = (dir / "x").string();
  const auto source = ps::from(numbers(3000));
  std::atomic<int> calls{0}, wrong{0};
  const auto want = [&] {
    const auto docs = ps::tokenised<token>(source | ps::map([&](int x) {
                                             ++calls;
                                             return document(x);
                                           }) | ps::workers(1),
                                           "t", prefix, small);
    if (docs.size() != 3000 || docs.lengths()[2999] != document(2999).size()) ++wrong;
  };
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 5; ++i) all.emplace_back(want);
  }
  CHECK(calls == 3000);
  CHECK(wrong == 0);
  CHECK(pair_of(prefix) == expected(numbers(3000)));
  CHECK(files_in(dir) == 3);

  // processes, the first of which is killed
  for (const auto& one : fs::directory_iterator(dir.path())) fs::remove(one.path());
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::alarm(60);
      try {
        (void)ps::tokenised<token>(source | ps::map([i](int x) {
                                     if (x == 1500 && i == 0) ::kill(::getpid(), SIGKILL);
                                     return document(x);
                                   }) | ps::workers(workers_in_child),
                                   "t", prefix, small);
        ::_exit(0);
      } catch (...) {
        ::_exit(98);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const bool dead = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && child == children[0];
    CHECK((dead || (WIFEXITED(status) && WEXITSTATUS(status) == 0)));
  }
  CHECK(pair_of(prefix) == expected(numbers(3000)));
  CHECK(files_in(dir) == 3);
}

}  // namespace tokenised_test
