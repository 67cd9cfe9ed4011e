// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace ps = penstock;

static_assert(std::is_nothrow_copy_constructible_v<ps::error> && std::is_nothrow_copy_assignable_v<ps::error>,
              "copying an error does not throw");
static_assert(std::is_base_of_v<std::exception, ps::error>, "an error is a standard exception");
static_assert(ps::to_string(ps::errc::checksum) == "checksum", "codes have names");

TEST_CASE("core/error: what() is one line, the sentence first, then the facts") {
  const ps::error plain(ps::errc::format, "the header is torn");
  CHECK(std::string_view(plain.what()) == "penstock: the header is torn");
  CHECK(plain.code() == ps::errc::format);
  CHECK(plain.message() == "the header is torn");
  CHECK(!plain.offset());
  CHECK(!plain.at());

  const auto full = ps::error(ps::errc::checksum, "sums differ")
                        .add_context({3, 17})
                        .at_offset(512)
                        .for_key("a/b")
                        .in_file("x.tar")
                        .in_stage("decode<npy>");
  CHECK(std::string_view(full.what()) ==
        "penstock: sums differ [stage decode<npy>, file x.tar, key a/b, offset 512, position 3:17]");
  CHECK(full.stage() == "decode<npy>");
  CHECK(full.file() == "x.tar");
  CHECK(full.key() == "a/b");
  CHECK(full.offset() == 512);
  CHECK(full.at() == ps::position{3, 17});
}

TEST_CASE("core/error: a fact once set is kept") {
  ps::error e(ps::errc::io, "no disk");
  e.in_file("inner").at_offset(0).add_context({0, 0});
  e.in_file("outer").at_offset(9).add_context({1, 1}).in_stage("outer");
  CHECK(std::string_view(e.what()) == "penstock: no disk [stage outer, file inner, offset 0, position 0:0]");
}

TEST_CASE("core/error: facts are added as the error passes through") {
  try {
    try {
      throw ps::error(ps::errc::missing, "no member").for_key("k");
    } catch (ps::error& e) {
      e.in_file("f").for_key("other");
      throw;
    }
  } catch (const std::exception& e) {
    CHECK(std::string_view(e.what()) == "penstock: no member [file f, key k]");
  }
}

TEST_CASE(
    "core/error: an offset within a part goes into the sentence, the part's own offset becomes the fact") {
  auto e = ps::error(ps::errc::format, "the npy header lies").at_offset(12);
  e.within("the field", 1536);
  CHECK(std::string_view(e.what()) == "penstock: the npy header lies, at byte 12 of the field [offset 1536]");
  auto none = ps::error(ps::errc::format, "no such thing");
  none.within("the field", 512);
  CHECK(std::string_view(none.what()) == "penstock: no such thing [offset 512]");
}

TEST_CASE("core/error: names with control characters do not break the line") {
  const auto e =
      ps::error(ps::errc::format, "first\nsecond").for_key("a\r\nb\x1b[31m\x7f").in_file("caf\xc3\xa9");
  CHECK(std::string_view(e.what()) == "penstock: first?second [file caf\xc3\xa9, key a??b?[31m?]");
}

TEST_CASE("core/error: a copy allocates nothing and is independent") {
  ps::error first(ps::errc::limit, "a sentence that is too long for the space inside of a string");
  CHECK(penstock_test::allocations_of([&] { const ps::error copy = first; }) == 0);
  ps::error second = first;
  second.in_file("x");
  CHECK(first.file().empty());
  CHECK(second.file() == "x");
}

TEST_CASE("core/error: a copy for another thread shares no text") {
  ps::error first(ps::errc::io, "the disk is full");
  first.in_file("a.tar").for_key("k").at_offset(7);
  ps::error shared = first, own = first;
  own.own_texts();
  CHECK(shared.what() == first.what());  // the same bytes
  CHECK(own.what() != first.what());
  CHECK(own.message().data() != first.message().data());
  CHECK(own.file().data() != first.file().data());
  CHECK(std::string_view(own.what()) == first.what());
  CHECK(own.offset() == 7);
}

TEST_CASE("core/error: failures of input and output may pass, others come again") {
  CHECK_FALSE(ps::error(ps::errc::io, "the connection broke").recurs());
  CHECK(ps::error(ps::errc::format, "no tar").recurs());
  CHECK(ps::error(ps::errc::stopped, "the read was cancelled").recurs());
  const ps::error missing = ps::error(ps::errc::io, "there is no such object").recurring();
  CHECK(missing.recurs());
  CHECK(ps::error(missing).recurs());
  CHECK(ps::error(missing).in_file("a.tar").recurs());
  CHECK_FALSE(ps::error(missing).recurring(false).recurs());
}

TEST_CASE("core/error: what a store asked for, and that nothing came in time, are facts that copies keep") {
  const ps::error plain(ps::errc::io, "the connection broke");
  CHECK_FALSE(plain.retry_after_ms());
  CHECK_FALSE(plain.timed_out());
  const ps::error asked = ps::error(ps::errc::io, "slow down").asked_to_wait(0).in_file("a.tar");
  CHECK(ps::error(asked).retry_after_ms() == 0);
  CHECK_FALSE(ps::error(asked).recurs());
  CHECK(ps::error(ps::errc::io, "slow down").asked_to_wait(1500).retry_after_ms() == 1500);
  const ps::error late = ps::error(ps::errc::io, "nothing came").after_time_out();
  CHECK(ps::error(late).timed_out());
}

TEST_CASE("core/error: more can be said at the end of the sentence") {
  auto e = ps::error(ps::errc::io, "the connection broke").in_file("a.tar");
  e.say_more("after 3 attempts");
  CHECK(std::string_view(e.what()) == "penstock: the connection broke, after 3 attempts [file a.tar]");
}

TEST_CASE("core/error: an exception of another type is inside, and can be taken out") {
  try {
    try {
      throw std::out_of_range("map::at");
    } catch (...) {
      ps::detail::rethrow_in_stage("map");
    }
  } catch (const ps::error& e) {
    CHECK(std::string_view(e.what()) == "penstock: this sample ended with an exception: map::at [stage map]");
    CHECK(e.code() == ps::errc::exception);
    CHECK_FALSE(ps::depends_on_bytes(e.code()));
    const auto& nested = dynamic_cast<const ps::nested_error&>(e);
    const ps::nested_error copy = nested;
    REQUIRE(copy.as<std::logic_error>() != nullptr);
    CHECK(std::string_view(copy.as<std::out_of_range>()->what()) == "map::at");
    CHECK(copy.as<std::runtime_error>() == nullptr);
    CHECK_THROWS_AS(std::rethrow_if_nested(e), std::out_of_range);
  }
  try {
    try {
      throw ps::error(ps::errc::format, "bad");
    } catch (...) {
      ps::detail::rethrow_in_stage("map");
    }
  } catch (const ps::error& e) {
    CHECK(std::string_view(e.what()) == "penstock: bad [stage map]");
    CHECK(dynamic_cast<const ps::nested_error*>(&e) == nullptr);
  }
}

TEST_CASE("core/error: memory that cannot be had has a sentence") {
  const ps::out_of_memory e(1000, "the slots of a batch", "make batches smaller");
  CHECK(std::string_view(static_cast<const std::bad_alloc&>(e).what()) ==
        "penstock: there is no memory for 1000 bytes of the slots of a batch; make batches smaller");
  CHECK(e.bytes() == 1000);
}

TEST_CASE("core/error: every code has a name of its own") {
  std::string names;
  for (const auto code :
       {ps::errc::format, ps::errc::checksum, ps::errc::missing, ps::errc::limit, ps::errc::shape,
        ps::errc::io, ps::errc::argument, ps::errc::state, ps::errc::stopped, ps::errc::exception})
    names += std::string(ps::to_string(code)) + " ";
  CHECK(names == "format checksum missing limit shape io argument state stopped exception ");
}
