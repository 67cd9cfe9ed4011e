// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

using namespace penstock;

namespace {

/// Counts its calls; its bytes are their offsets.
struct recording_session {
  mutable int read_calls = 0;

  [[nodiscard]] std::uint64_t size(object_id id) const { return 100 + id; }
  [[nodiscard]] object_version version(object_id id) const { return {size(id), 7}; }
  void read(object_id, std::uint64_t offset, mutable_bytes into) const {
    ++read_calls;
    for (std::byte& b : into) b = static_cast<std::byte>(offset++);
  }
  void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
  void confirm(object_id) const { throw error(errc::io, "the bytes were lost"); }
};

std::uint64_t size_of_first(session_view session) { return session.size(0); }

}  // namespace

static_assert(std::is_trivially_copyable_v<session_view> && sizeof(session_view) == 2 * sizeof(void*));
static_assert(!std::is_constructible_v<session_view, recording_session>, "a temporary would not outlive it");
static_assert(!std::is_constructible_v<session_view, std::string&>, "only sessions can be viewed");
static_assert(!storage_session<session_view>, "what it can is known when the program runs");

TEST_CASE("session_view: calls reach the session") {
  recording_session session;
  const session_view seen(session);
  CHECK(seen.size(3) == 103);
  CHECK(seen.version(1) == object_version{101, 7});
  CHECK_FALSE(seen.views());
  const object_bytes read = seen.range(0, 5, 3);
  const bytes_view range = read;
  CHECK((range.size() == 3 && range[0] == std::byte{5} && range[2] == std::byte{7}));
  CHECK(session.read_calls == 1);
  CHECK(size_of_first(session) == 100);
}

// A view of bytes whose owner ends with the expression, or is used for the next range, would dangle.
static_assert(std::is_convertible_v<const object_bytes&, bytes_view> &&
              !std::is_convertible_v<object_bytes, bytes_view> &&
              !std::is_convertible_v<const object_bytes, bytes_view>);
static_assert(!std::is_copy_constructible_v<object_bytes> &&
              std::is_nothrow_move_constructible_v<object_bytes>);

TEST_CASE("session_view: a range keeps its bytes, whatever is read after it") {
  recording_session session;
  const session_view seen(session);
  const object_bytes first = seen.range(0, 0, 100);
  object_bytes second = seen.range(0, 100, 100);
  CHECK((first.size() == 100 && first.view()[99] == std::byte{99}));
  CHECK(second.view()[0] == std::byte{100});
  const bytes_view before = second;
  object_bytes third = seen.range(0, 7, 50, std::move(second));
  CHECK(third.view().data() == before.data());  // the memory is reused
  CHECK((third.size() == 50 && third.view()[0] == std::byte{7}));
  CHECK(second.size() == 0);
  second = std::move(third);
  CHECK((second.size() == 50 && third.size() == 0));

  const auto files = memory_files().add_view("a", bytes_of("abcdef"));
  const auto in_place = files.connect();
  third = session_view(in_place).range(0, 2, 2, std::move(second));
  CHECK(text_of(third) == "cd");
}

TEST_CASE("session_view: confirm throws what the session throws") {
  recording_session session;
  CHECK_THROWS_AS(session_view(session).confirm(0), error);
}

TEST_CASE("session_view: a session with views shows its bytes in place") {
  const std::string text = "abcdef";
  const auto files = memory_files().add_view("a", bytes_of(text));
  const auto session = files.connect();  // const sessions can be viewed too
  const session_view seen(session);
  CHECK(seen.views());
  CHECK(static_cast<const void*>(seen.view(0, 2, 3).data()) == text.data() + 2);
  const object_bytes shown = seen.range(0, 1, 5);
  CHECK(static_cast<const void*>(shown.view().data()) == text.data() + 1);
  seen.confirm(0);
  CHECK_THROWS_AS(seen.view(0, 5, 2), error);
}

TEST_CASE("session_view: whether an object has a version is asked for, unless the session checks it itself") {
  recording_session asked;
  CHECK(session_view(asked).has_version(1, {101, 7}));
  CHECK_FALSE(session_view(asked).has_version(1, {101, 8}));

  struct expecting : recording_session {
    mutable int questions = 0;
    [[nodiscard]] object_version version(object_id id) const {
      ++questions;
      return recording_session::version(id);
    }
    [[nodiscard]] bool expect(object_id, object_version what) const { return what.stamp < 10; }
  };
  const expecting session;
  CHECK(session_view(session).has_version(1, {101, 9}));  // its reads would fail
  CHECK(session.questions == 0);
  CHECK_FALSE(session_view(session).has_version(1, {101, 10}));
  CHECK(session.questions == 1);
}

TEST_CASE("session_view: whether a version is a tag of the bytes") {
  recording_session session;
  CHECK_FALSE(session_view(session).tagged(0));
  const auto files = memory_files().add("a", "bytes");
  const auto in_memory = files.connect();
  CHECK(session_view(in_memory).tagged(0));
  const auto around = simulated_storage(files).connect();
  CHECK(session_view(around).tagged(0));
  const file local("a");
  const auto paths = simulated_storage(local).connect();
  CHECK_FALSE(session_view(paths).tagged(0));
}

TEST_CASE("session_view: copies view one session") {
  recording_session session;
  session_view seen(session);
  session_view copy(seen);
  copy.read(0, 0, {});
  seen = copy;
  seen.read(0, 0, {});
  CHECK(session.read_calls == 2);
}

TEST_CASE("facts_of: names, and whether they are paths") {
  const file local({"a.tar", "b.tar"});
  const storage_facts facts = facts_of(local);
  CHECK(facts.local);
  CHECK((facts.names.size() == 2 && facts.names[1] == "b.tar" && facts.names.data() == local.names().data()));
  const auto memory = memory_files().add("x", "1");
  CHECK_FALSE(facts_of(memory).local);
}
