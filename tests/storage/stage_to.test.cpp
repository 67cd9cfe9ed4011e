// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/stage_to.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/cache/staged_object.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/held_storage.hpp"
#include "support/staged_store.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace stage_to_test {

using penstock_test::contains;
using penstock_test::staged_counts;
using penstock_test::staged_store;
using penstock_test::temp_dir;

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string made_up(std::size_t size, unsigned seed) {
  std::string text(size, '\0');
  for (char& one : text) one = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
  return text;
}
void put(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
std::vector<std::string> names_of(const ps::file& local) {
  return {local.names().begin(), local.names().end()};
}

/// What an error of this kind says.
template <class F>
std::string refusal(ps::errc code, F&& call) {
  try {
    call();
  } catch (const ps::error& e) {
    CHECK(ps::to_string(e.code()) == ps::to_string(code));
    return e.what();
  }
  return "nothing was thrown";
}

ps::file stage(const staged_store& far, const std::string& folder) {
  return ps::stage_to(far, folder, {.max_in_flight = 4, .part_size = 1000});
}

TEST_CASE("storage/stage_to: the copies have the bytes of every storage, in its order") {
  const temp_dir dir;
  const std::vector<std::string> texts{made_up(100'000, 1), "", made_up(1, 2), made_up(4096, 3),
                                       made_up(12'345, 4)};
  std::vector<std::string> paths;
  ps::memory_files memory;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string name = "far/" + std::to_string(9 - i) + (i == 3 ? "/x.tar" : ".tar");
    paths.push_back((dir / name).string());
    put(paths.back(), texts[i]);
    memory.add(name, texts[i]);
  }
  int number = 0;
  const auto check = [&](const auto& far) {
    const std::string folder = (dir / ("near-" + std::to_string(++number))).string();
    for (int again = 0; again < 2; ++again) {
      ps::stage_progress last;
      const ps::file local = ps::stage_to(far, folder, {.max_in_flight = 3, .part_size = 4096},
                                          [&](const ps::stage_progress& now) { last = now; });
      const auto names = names_of(local);
      REQUIRE(names.size() == texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) CHECK(text_of(names[i]) == texts[i]);
      CHECK(names[0] == folder + "/9.tar");
      CHECK(names[3] == folder + "/6/x.tar");
      CHECK(last.objects_done == texts.size());
      CHECK(last.objects == texts.size());
      CHECK(last.bytes == 116'442);
      CHECK(last.bytes_done == last.bytes);
      CHECK(last.fetched == (again == 0 ? last.bytes : 0));
    }
  };
  check(memory);
  check(ps::file(paths));
  check(ps::mapped_file(paths));
  const ps::simulated_storage distant(memory, {.latency = std::chrono::microseconds(50), .failing = 0.2});
  check(ps::retrying(distant, {.initial_backoff = std::chrono::milliseconds(1)}));
  penstock_test::in_each_store(paths, [&](const std::string&, const auto& far) { check(far); });
}

TEST_CASE("storage/stage_to: files and folders belong to their user alone") {
  const temp_dir dir;
  const std::string folder = (dir / "a/b/near").string();
  const auto names = names_of(ps::stage_to(
      ps::memory_files().add("x/1.tar", std::string("one")).add("y/2.tar", std::string("two")), folder));
  const auto mode = [](const std::string& path) {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 0777;
  };
  CHECK(mode(folder) == 0700);
  CHECK(mode(folder + "/x") == 0700);
  CHECK(mode(folder + "/.penstock-staged") == 0700);
  for (const std::string& one : names) CHECK(mode(one) == 0600);
}

TEST_CASE("storage/stage_to: an object that was replaced is fetched again") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {5000, 0, 7001});
  const std::string folder = dir.path().string() + "/near/";
  const auto names = names_of(stage(far, folder));
  CHECK(far.wrong(names) == 0);
  CHECK(far.counts->all() == 12'001);
  CHECK(names[0] == dir.path().string() + "/near/object-0.bin");
  far.counts->forget();
  CHECK(names_of(stage(far, folder)) == names);
  CHECK(far.counts->all() == 0);
  SECTION("with another stamp") { far.counts->stamp = 6; }
  SECTION("with another size") { far.sizes = {6000, 1, 10}; }
  CHECK(far.wrong(names) != 0);
  CHECK(names_of(stage(far, folder)) == names);
  CHECK(far.wrong(names) == 0);
  CHECK(far.counts->all() == far.size());
}

TEST_CASE("storage/stage_to: an object without a stamp is the same while it has the same size") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {5000});
  far.counts->stamp = 0;
  const std::string folder = dir.path().string();
  (void)stage(far, folder);
  far.counts->forget();
  (void)stage(far, folder);
  CHECK(far.counts->all() == 0);
  far.sizes = {5001};
  CHECK(far.wrong(names_of(stage(far, folder))) == 0);
  // Half of it is begun anew.
  far.sizes = {9000};
  far.counts->forget();
  far.counts->special_read = 5;
  far.special = [](const staged_store&) { throw ps::error(ps::errc::io, "the connection broke"); };
  CHECK_THROWS_AS(ps::stage_to(far, folder, {.max_in_flight = 1, .part_size = 1000}), ps::error);
  far.counts->forget();
  far.special = nullptr;
  CHECK(far.wrong(names_of(stage(far, folder))) == 0);
  CHECK(far.counts->all() == 9000);
}

TEST_CASE("storage/stage_to: what was changed in the folder is fetched again") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {5000, 3000});
  const std::string folder = dir.path().string();
  const auto names = names_of(stage(far, folder));
  far.counts->forget();
  SECTION("a file that was cut off") {
    fs::resize_file(names[1], 10);
    (void)stage(far, folder);
    CHECK(far.counts->all() == 3000);
  }
  SECTION("a file that was written to") {
    const auto before = fs::last_write_time(names[1]);
    std::fstream(names[1], std::ios::in | std::ios::out | std::ios::binary) << "written";
    fs::last_write_time(names[1], before + std::chrono::seconds(1));
    (void)stage(far, folder);
    CHECK(far.counts->all() == 3000);
  }
  SECTION("a file that was removed") {
    fs::remove(names[1]);
    (void)stage(far, folder);
    CHECK(far.counts->all() == 3000);
  }
  SECTION("a copy of the folder with its times is as good") {
    const temp_dir other;
    const std::string copied = (other / "copy").string();
    fs::copy(folder, copied, fs::copy_options::recursive);
    fs::permissions(copied, fs::perms::owner_all);
    for (const std::string& one : names)
      fs::last_write_time(copied / fs::path(one).filename(), fs::last_write_time(one));
    CHECK(far.wrong(names_of(stage(far, copied))) == 0);
    CHECK(far.counts->all() == 0);
  }
  SECTION("records that are gone or damaged make files strange") {
    for (const auto& one : fs::directory_iterator(folder + "/.penstock-staged"))
      if (one.path().extension() == ".record") put(one.path().string(), "penstock staged 1\nobject 9999999 ");
    CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, folder); }), contains("was not staged"));
  }
  CHECK(far.wrong(names) == 0);
}

TEST_CASE("storage/stage_to: what it did not write stays") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {5000, 3000});
  const std::string folder = dir.path().string(), strange = folder + "/object-1.bin";
  SECTION("a file") {
    put(strange, "mine");
    CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, folder); }),
               contains("there is a file of this name that was not staged") && contains(strange));
    CHECK(text_of(strange) == "mine");
  }
  SECTION("a file in the place of one that was staged") {
    (void)stage(far, folder);
    put(folder + "/new", "mine");
    fs::rename(folder + "/new", strange);
    CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, folder); }), contains("was not staged"));
    CHECK(text_of(strange) == "mine");
  }
  SECTION("a folder") {
    fs::create_directory(strange);
    CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, folder); }), contains(strange));
  }
  SECTION("a link") {
    put(folder + "/mine", "mine");
    fs::create_symlink("mine", strange);
    CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, folder); }), contains(strange));
    CHECK(text_of(folder + "/mine") == "mine");
  }
  SECTION("what was staged from another object") {
    (void)stage(far, folder);
    for (std::string& one : far.list) one = "else" + one;
    const std::string text = refusal(ps::errc::argument, [&] { (void)stage(far, folder); });
    CHECK_THAT(text, contains("this file was staged from far/object-"));
    CHECK_THAT(text, contains("and not from elsefar/object-"));
  }
  SECTION("files beside them") {
    put(folder + "/object-2.bin", "mine");
    put(folder + "/.penstock-staged/mine", "mine");
    CHECK(far.wrong(names_of(stage(far, folder))) == 0);
    CHECK(text_of(folder + "/object-2.bin") == "mine");
    CHECK(text_of(folder + "/.penstock-staged/mine") == "mine");
  }
}

TEST_CASE("storage/stage_to: folders that others may write to, and those that cannot be made, are refused") {
  const temp_dir dir;
  const staged_store far(staged_counts::make(), {5000});
  const std::string folder = (dir / "near").string();
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::all);
  CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, folder); }), contains("others may write"));
  put((dir / "file").string(), "mine");
  CHECK_THAT(refusal(ps::errc::io, [&] { (void)stage(far, (dir / "file").string()); }),
             contains("open the folder"));
  CHECK_THAT(refusal(ps::errc::io, [&] { (void)stage(far, (dir / "file/near").string()); }),
             contains("make the folder"));
  CHECK_THAT(refusal(ps::errc::argument, [&] { (void)stage(far, ""); }), contains("path of a folder"));
  CHECK_THAT(refusal(ps::errc::argument, [&] { (void)ps::stage_to(far, folder, {.max_in_flight = 0}); }),
             contains("at least one request"));
  CHECK_THAT(refusal(ps::errc::argument, [&] { (void)ps::stage_to(far, folder, {.part_size = 0}); }),
             contains("at least one byte"));
  CHECK(far.counts->all() == 0);
}

TEST_CASE("storage/stage_to: an error has the object's name, and the next call goes on") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {10'000});
  far.counts->special_read = 7;
  far.special = [](const staged_store&) { throw ps::error(ps::errc::io, "the connection broke"); };
  CHECK_THAT(
      refusal(ps::errc::io,
              [&] { (void)ps::stage_to(far, dir.path().string(), {.max_in_flight = 1, .part_size = 1000}); }),
      contains("the connection broke") && contains("far/object-0.bin"));
  CHECK_FALSE(fs::exists(dir / "object-0.bin"));
  far.counts->forget();
  far.special = nullptr;
  CHECK(far.wrong(names_of(stage(far, dir.path().string()))) == 0);
  CHECK(far.counts->all() == 4000);
}

TEST_CASE("storage/stage_to: half of an object that was replaced is not gone on with") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {10'000});
  far.counts->special_read = 7;
  far.special = [](const staged_store&) { throw ps::error(ps::errc::io, "the connection broke"); };
  CHECK_THROWS_AS(ps::stage_to(far, dir.path().string(), {.max_in_flight = 1, .part_size = 1000}), ps::error);
  far.counts->forget();
  far.counts->stamp = 8;
  far.special = nullptr;
  CHECK(far.wrong(names_of(stage(far, dir.path().string()))) == 0);
  CHECK(far.counts->all() == 10'000);
}

TEST_CASE(
    "storage/stage_to: half of an object from before the machine was started anew is not gone on with") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {10'000});
  far.counts->special_read = 7;
  far.special = [](const staged_store&) { throw ps::error(ps::errc::io, "the connection broke"); };
  CHECK_THROWS_AS(ps::stage_to(far, dir.path().string(), {.max_in_flight = 1, .part_size = 1000}), ps::error);
  for (const auto& one : fs::directory_iterator(dir / ".penstock-staged")) {
    if (one.path().extension() != ".record") continue;
    auto about = ps::detail::staging::parse_record(text_of(one.path().string()));
    REQUIRE(about);
    about->boot = "another one";
    put(one.path().string(), ps::detail::staging::to_text(*about));
  }
  far.counts->forget();
  far.special = nullptr;
  CHECK(far.wrong(names_of(stage(far, dir.path().string()))) == 0);
  CHECK(far.counts->all() == 10'000);
}

TEST_CASE("storage/stage_to: an object that is replaced while it is read is an error") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {10'000});
  far.counts->special_read = 5;
  far.special = [](const staged_store& here) { here.counts->stamp = 77; };
  CHECK_THAT(refusal(ps::errc::io, [&] { (void)stage(far, dir.path().string()); }),
             contains("was replaced while it was staged") && contains("far/object-0.bin"));
  CHECK_FALSE(fs::exists(dir / "object-0.bin"));
  far.counts->forget();
  CHECK(far.wrong(names_of(stage(far, dir.path().string()))) == 0);
  CHECK(far.counts->all() == 10'000);
}

TEST_CASE("storage/stage_to: a stop ends the call promptly, and the next one goes on") {
  const penstock_test::deadline guard("a stop of stage_to");
  const temp_dir dir;
  const std::string text = made_up(10'000, 5);
  const penstock_test::held_storage far(ps::memory_files().add("a", text));
  std::stop_source stop;
  std::thread other([&] {
    penstock_test::eventually([&] { return far.reads->count() == 3; });
    far.reads->end(0);
    penstock_test::eventually([&] { return far.reads->begun() == 4; });
    stop.request_stop();
  });
  // A check would find out whether a mixture came of it, so the object is gone on with.
  struct any_bytes {
    struct running {
      void add(ps::bytes_view) {}
      void finish() {}
    };
    [[nodiscard]] running begin(std::string_view) const { return {}; }
  };
  const std::string folder = dir.path().string();
  CHECK_THAT(refusal(ps::errc::stopped,
                     [&] {
                       (void)ps::stage_to(far, folder,
                                          {.max_in_flight = 3, .part_size = 1000, .stop = stop.get_token()},
                                          any_bytes());
                     }),
             contains("staging was stopped"));
  other.join();
  CHECK(far.reads->count() == 0);
  CHECK_FALSE(fs::exists(dir / "a"));
  ps::stage_progress last;
  const auto names = names_of(ps::stage_to(ps::memory_files().add("a", text), folder, {}, any_bytes(),
                                           [&](const ps::stage_progress& now) { last = now; }));
  CHECK(text_of(names[0]) == text);
  CHECK(last.fetched == 9000);
  // One that was asked for before it began.
  const temp_dir fresh;
  CHECK_THAT(refusal(ps::errc::stopped,
                     [&] { (void)ps::stage_to(far, fresh.path().string(), {.stop = stop.get_token()}); }),
             contains("staging was stopped"));
}

TEST_CASE("storage/stage_to: a watcher that throws ends the call") {
  const penstock_test::deadline guard("a watcher of stage_to");
  const temp_dir dir;
  const penstock_test::held_storage far(ps::memory_files().add("a", std::string(100, 'x')));
  const auto watch = [&](const ps::stage_progress& now) {
    if (now.bytes == 100) throw std::runtime_error("enough");
  };
  CHECK_THROWS_WITH(ps::stage_to(far, dir.path().string(), {}, watch), "enough");
}

/// A check that knows sums of bytes, and notes what it sees.
struct sum_check {
  struct notes {
    std::uint64_t seen = 0, begun = 0;
  };
  std::uint64_t right = 0;
  notes* all;

  struct running {
    const sum_check* check;
    std::uint64_t sum = 0;
    void add(ps::bytes_view bytes) {
      check->all->seen += bytes.size();
      for (const std::byte one : bytes) sum += std::to_integer<std::uint64_t>(one);
    }
    void finish() const {
      if (sum != check->right) throw ps::error(ps::errc::checksum, "the sum is another one");
    }
  };
  [[nodiscard]] running begin(std::string_view name) const {
    CHECK(name == "far/object-0.bin");
    ++all->begun;
    return {this};
  }
};

TEST_CASE("storage/stage_to: a check sees all bytes, and what it refuses is fetched once more") {
  const temp_dir dir;
  const std::string folder = dir.path().string();
  staged_store far(staged_counts::make(), {10'000});
  sum_check::notes notes;
  sum_check check{0, &notes};
  for (std::uint64_t i = 0; i < 10'000; ++i)
    check.right += std::to_integer<std::uint64_t>(far.byte_at(0, 5, i));
  const ps::stage_options options{.max_in_flight = 1, .part_size = 1000};
  SECTION("right bytes") {
    CHECK(far.wrong(names_of(ps::stage_to(far, folder, options, check))) == 0);
    CHECK(notes.seen == 10'000);
    CHECK(far.counts->all() == 10'000);
    (void)ps::stage_to(far, folder, options, check);
    CHECK(notes.begun == 1);
  }
  SECTION("what an earlier call has written") {
    far.counts->special_read = 7;
    far.special = [](const staged_store&) { throw ps::error(ps::errc::io, "the connection broke"); };
    CHECK_THROWS_AS(ps::stage_to(far, folder, options), ps::error);
    far.special = nullptr;
    far.counts->forget();
    CHECK(far.wrong(names_of(ps::stage_to(far, folder, options, check))) == 0);
    CHECK(notes.seen == 10'000);
    CHECK(far.counts->all() == 4000);
  }
  SECTION("wrong bytes once") {
    // What is on the disk was damaged.
    far.counts->special_read = 7;
    far.special = [](const staged_store&) { throw ps::error(ps::errc::io, "the connection broke"); };
    CHECK_THROWS_AS(ps::stage_to(far, folder, options), ps::error);
    far.special = nullptr;
    far.counts->forget();
    for (const auto& one : fs::directory_iterator(folder + "/.penstock-staged"))
      if (one.path().extension() == ".part")
        std::fstream(one.path(), std::ios::in | std::ios::out | std::ios::binary) << "damage";
    CHECK(far.wrong(names_of(ps::stage_to(far, folder, options, check))) == 0);
    CHECK(notes.begun == 2);
    CHECK(far.counts->all() == 14'000);
  }
  SECTION("wrong bytes always") {
    ++check.right;
    CHECK_THAT(refusal(ps::errc::checksum, [&] { (void)ps::stage_to(far, folder, options, check); }),
               contains("the sum is another one") && contains("far/object-0.bin"));
    CHECK(notes.begun == 2);
    CHECK(far.counts->all() == 20'000);
    CHECK_FALSE(fs::exists(folder + "/object-0.bin"));
    for (const auto& one : fs::directory_iterator(folder + "/.penstock-staged"))
      CHECK(one.path().extension() != ".part");
  }
}

TEST_CASE("storage/stage_to: a file that is missing is the storage's error") {
  const temp_dir dir;
  const std::string path = (dir / "far/none.tar").string();
  CHECK_THAT(
      refusal(ps::errc::io, [&] { (void)ps::stage_to(ps::file({path.c_str()}), (dir / "near").string()); }),
      contains(path));
}

TEST_CASE("storage/stage_to: no objects are no files") {
  const temp_dir dir;
  CHECK(names_of(ps::stage_to(ps::memory_files(), dir.path().string())).empty());
}

}  // namespace stage_to_test
