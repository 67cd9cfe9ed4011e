// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/arrow_stream.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/arrow_abi.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/resume_test.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
namespace abi = penstock::arrow_abi;

static_assert(ps::forward_source<ps::arrow_stream_source>);
static_assert(ps::open_sample<ps::arrow_stream_source::element>);

namespace arrow_stream_test {

/// As another library declares it.
struct foreign_stream {
  int (*get_schema)(foreign_stream*, void*) = nullptr;
  int (*get_next)(foreign_stream*, void*) = nullptr;
  const char* (*get_last_error)(foreign_stream*) = nullptr;
  void (*release)(foreign_stream*) = nullptr;
  void* private_data = nullptr;
};

/// An exporter of batches with the columns "n" (int64, counting, every fifth null) and "s" (a text in a
/// struct "in"), which can do wrong in many ways.
struct exporter {
  std::vector<std::int64_t> sizes{3, 0, 4, 1};
  std::function<void(abi::schema&)> spoil_schema;
  std::function<void(abi::array&)> spoil_batch;
  std::size_t fails_at = 99;
  std::string failure = "the disk is full";
  std::atomic<int>* alive = nullptr;  // schemas, batches and streams that were not released
};

struct counted {
  std::shared_ptr<const exporter> from;
  explicit counted(std::shared_ptr<const exporter> one) : from(std::move(one)) { ++*from->alive; }
  ~counted() { --*from->alive; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
};

struct made_schema : counted {
  using counted::counted;
  std::array<abi::schema, 3> all;  // n, in, s
  std::array<abi::schema*, 2> columns{&all[0], &all[1]};
  std::array<abi::schema*, 1> inner{&all[2]};
};
struct made_batch : counted {
  using counted::counted;
  std::vector<std::int64_t> numbers;
  std::vector<std::uint8_t> valid;
  std::string text;
  std::vector<std::uint32_t> offsets{0};
  std::array<abi::array, 3> all;
  std::array<abi::array*, 2> columns{&all[0], &all[1]};
  std::array<abi::array*, 1> inner{&all[2]};
  std::array<const void*, 1> none{};
  std::array<const void*, 2> of_numbers{};
  std::array<const void*, 3> of_text{};
};
struct made_stream : counted {
  using counted::counted;
  std::size_t next = 0;
  std::int64_t first = 0;
};

template <class Made, class T>
void let_go(T* self) {
  delete static_cast<Made*>(self->private_data);
  self->release = nullptr;
}
template <class T>
void belongs(T* self) {  // to its parent, which frees it
  self->release = nullptr;
}

abi::array_stream stream_of(const exporter& what) {
  abi::array_stream made;
  made.private_data = new made_stream(std::make_shared<exporter>(what));
  made.release = &let_go<made_stream>;
  made.get_last_error = [](abi::array_stream* self) -> const char* {
    const std::string& said = static_cast<made_stream*>(self->private_data)->from->failure;
    return said.empty() ? nullptr : said.c_str();
  };
  made.get_schema = [](abi::array_stream* self, abi::schema* out) {
    const auto& stream = *static_cast<made_stream*>(self->private_data);
    auto* const schema = new made_schema(stream.from);
    for (abi::schema& one : schema->all) one.release = &belongs<abi::schema>;
    schema->all[0].format = "l";
    schema->all[0].name = "n";
    schema->all[1].format = "+s";
    schema->all[1].name = "in";
    schema->all[1].n_children = 1;
    schema->all[1].children = schema->inner.data();
    schema->all[2].format = "u";
    schema->all[2].name = "s";
    *out = {};
    out->format = "+s";
    out->n_children = 2;
    out->children = schema->columns.data();
    out->private_data = schema;
    out->release = &let_go<made_schema>;
    if (stream.from->spoil_schema) stream.from->spoil_schema(*out);
    return 0;
  };
  made.get_next = [](abi::array_stream* self, abi::array* out) {
    auto& stream = *static_cast<made_stream*>(self->private_data);
    *out = {};
    if (stream.next == stream.from->fails_at) return EIO;
    if (stream.next == stream.from->sizes.size()) return 0;
    const std::int64_t size = stream.from->sizes[stream.next++];
    auto* const batch = new made_batch(stream.from);
    batch->numbers.assign(2, -1);  // in front of the offset
    batch->valid.assign(static_cast<std::size_t>(size + 2) / 8 + 1, 0);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t n = stream.first++;
      batch->numbers.push_back(n);
      if (n % 5 != 4)
        batch->valid[static_cast<std::size_t>(i + 2) / 8] = static_cast<std::uint8_t>(
            batch->valid[static_cast<std::size_t>(i + 2) / 8] | 1u << ((i + 2) % 8));
      batch->text += "t" + std::to_string(n);
      batch->offsets.push_back(static_cast<std::uint32_t>(batch->text.size()));
    }
    batch->of_numbers = {batch->valid.data(), batch->numbers.data()};
    batch->of_text = {nullptr, batch->offsets.data(), batch->text.data()};
    for (abi::array& one : batch->all) {
      one.release = &belongs<abi::array>;
      one.length = size;
      one.null_count = -1;
    }
    batch->all[0].offset = 2;
    batch->all[0].n_buffers = 2;
    batch->all[0].buffers = batch->of_numbers.data();
    batch->all[1].n_buffers = 1;
    batch->all[1].buffers = batch->none.data();
    batch->all[1].n_children = 1;
    batch->all[1].children = batch->inner.data();
    batch->all[2].n_buffers = 3;
    batch->all[2].buffers = batch->of_text.data();
    out->length = size;
    out->n_buffers = 1;
    out->buffers = batch->none.data();
    out->n_children = 2;
    out->children = batch->columns.data();
    out->private_data = batch;
    out->release = &let_go<made_batch>;
    if (stream.from->spoil_batch) stream.from->spoil_batch(*out);
    return 0;
  };
  return made;
}

struct alive_check {
  std::atomic<int> alive{0};
  exporter what;
  alive_check() { what.alive = &alive; }
  ~alive_check() { CHECK(alive == 0); }
};

template <class Plan>
std::vector<std::string> rows_of(const Plan& plan, std::size_t epochs = 1) {
  std::vector<std::string> all;
  auto run = (plan | ps::map(penstock_test::arrow_row_text)).open();
  for (auto&& epoch : run.epochs(epochs))
    for (const auto& row : epoch) all.push_back(row);
  return all;
}

const std::vector<std::string> expected{R"(0	"7430")", R"(1	"7431")", R"(2	"7432")", R"(3	"7433")",
                                        R"(null	"7434")", R"(5	"7435")", R"(6	"7436")", R"(7	"7437")"};

}  // namespace arrow_stream_test

using namespace arrow_stream_test;

TEST_CASE("source/arrow_stream: the rows of another library's stream, which is released") {
  alive_check of;
  auto stream = stream_of(of.what);
  const auto source = ps::arrow_stream(stream);
  CHECK(stream.release == nullptr);
  CHECK(of.alive == 1);
  CHECK(rows_of(source | ps::workers(2)) == expected);
  // of any declaration
  auto again = stream_of(of.what);
  foreign_stream foreign;
  static_assert(sizeof(foreign) == sizeof(again));
  std::memcpy(static_cast<void*>(&foreign), &again, sizeof(foreign));
  CHECK(rows_of(ps::arrow_stream(&foreign)) == expected);
  CHECK(foreign.release == nullptr);
}

TEST_CASE("source/arrow_stream: a function makes a stream for each epoch") {
  alive_check of;
  int made = 0;
  const auto source = ps::arrow_stream([&] {
    ++made;
    return stream_of(of.what);
  });
  std::vector<std::string> twice = expected;
  twice.insert(twice.end(), expected.begin(), expected.end());
  CHECK(rows_of(source, 2) == twice);
  CHECK(made >= 2);
  CHECK(made <= 3);
  auto shuffled = rows_of(source | ps::shuffle_buffer(5));
  CHECK(shuffled != expected);
  std::sort(shuffled.begin(), shuffled.end());
  auto sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  CHECK(shuffled == sorted);
}

TEST_CASE("source/arrow_stream: a run resumes in a new stream, at every step") {
  alive_check of;
  const auto plan = ps::arrow_stream([&] { return stream_of(of.what); }) |
                    ps::decode<ps::field<"n", ps::arrow_value<std::int64_t, 77>>> |
                    ps::map([](const auto& r) { return static_cast<std::uint64_t>(ps::get<"n">(r)); });
  engine_test::check_all_stops(plan);
  engine_test::check_all_stops(plan | ps::batch(2));
}

TEST_CASE("source/arrow_stream: what cannot be read is one sentence, and everything is released") {
  const auto error_of = [](exporter what) -> std::string {
    try {
      auto stream = stream_of(what);
      (void)rows_of(ps::arrow_stream(stream));
    } catch (const ps::error& e) {
      return e.what();
    }
    return "none";
  };
  alive_check of;
  exporter what = of.what;
  what.fails_at = 2;
  CHECK_THAT(error_of(what), Catch::Contains("failed to give its next batch: the disk is full"));
  what.failure.clear();
  CHECK_THAT(error_of(what), Catch::Contains("failed to give its next batch: Input/output error"));
  what = of.what;
  what.spoil_schema = [](abi::schema& s) { s.format = "l"; };
  CHECK_THAT(error_of(what), Catch::Contains("has values of type int64<"));
  what.spoil_schema = [](abi::schema& s) { s.children[0]->format = nullptr; };
  CHECK_THAT(error_of(what), Catch::Contains("the schema of the column 'n' was released already"));
  what.spoil_schema = [](abi::schema& s) { s.n_children = -1; };
  CHECK_THAT(error_of(what), Catch::Contains("has no children where it says so"));
  what.spoil_schema = [](abi::schema& s) { s.children[1]->format = "+l", s.children[1]->n_children = 0; };
  CHECK_THAT(error_of(what), Catch::Contains("the list 'in' has 0 children"));
  what.spoil_schema = [](abi::schema& s) {
    s.children[0]->format = "f", s.children[0]->dictionary = s.children[1];
  };
  CHECK_THAT(error_of(what), Catch::Contains("numbered by no whole numbers"));
  what.spoil_schema = nullptr;
  what.spoil_batch = [](abi::array& a) { a.children[0]->n_buffers = 3; };
  CHECK_THAT(error_of(what),
             Catch::Contains("the column 'n' of a batch has another number of buffers than its type"));
  what.spoil_batch = [](abi::array& a) { a.children[0]->buffers[1] = nullptr; };
  CHECK_THAT(error_of(what), Catch::Contains("has no values"));
  what.spoil_batch = [](abi::array& a) { a.children[0]->length = 1; };
  CHECK_THAT(error_of(what), Catch::Contains("has a child of fewer rows"));
  what.spoil_batch = [](abi::array& a) { a.n_children = 1; };
  CHECK_THAT(error_of(what), Catch::Contains("has another number of children than its type"));
  what.spoil_batch = [](abi::array& a) { a.children[0]->offset = -1; };
  CHECK_THAT(error_of(what), Catch::Contains("has a negative length or offset"));
  what.spoil_batch = [](abi::array& a) { a.children[0] = nullptr; };
  CHECK_THAT(error_of(what), Catch::Contains("has a child that is a null pointer"));
}

TEST_CASE("source/arrow_stream: a stream cannot be read twice") {
  alive_check of;
  auto stream = stream_of(of.what);
  const auto source = ps::arrow_stream(stream);
  CHECK(rows_of(source) == expected);
  CHECK_THROWS_WITH(rows_of(source), Catch::Contains("used by another reader") &&
                                         Catch::Contains("a function that makes one"));
  CHECK_THROWS_WITH(rows_of(ps::arrow_stream(stream)), Catch::Contains("was released already"));
}

TEST_CASE("source/arrow_stream: a state of another stream is refused") {
  alive_check of;
  const auto plan_of = [&](exporter what) {
    return ps::arrow_stream([what] { return stream_of(what); }) |
           ps::decode<ps::field<"n", ps::arrow_value<std::int64_t, 77>>> | ps::batch(6);
  };
  exporter longer = of.what;
  longer.sizes.assign(60, 3);
  std::string state;
  {
    auto run = plan_of(longer).open();
    for (int i = 0; i < 20; ++i) REQUIRE(run.next());
    state = to_string(run.state());
  }
  exporter shorter = of.what;
  shorter.sizes = {3};
  auto run = plan_of(shorter).open(ps::state_from_string(state));
  const auto next = run.next();
  REQUIRE(next.failure != nullptr);
  CHECK_THROWS_WITH(std::rethrow_exception(next.failure), Catch::Contains("it is another stream"));
}
