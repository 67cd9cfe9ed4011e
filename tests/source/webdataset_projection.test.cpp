// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/webdataset.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/noting_storage.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/integer.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::noted_range;
using penstock_test::raw_tar;
using penstock_test::store_kind;
using penstock_test::stored;

namespace webdataset_projection_test {

using ranges = std::vector<noted_range>;

/// A storage with a list of the requests to it. If it has latency, runs read it in the background, else they
/// give it hints.
template <bool Latency>
struct noting_store {
  stored inside;
  std::shared_ptr<penstock_test::storage_notes> notes;

  class session {
   public:
    static constexpr ps::session_traits traits = {.latency = Latency};
    session(const stored& where, std::shared_ptr<penstock_test::storage_notes> kept)
        : inside_(where.connect()), notes_(std::move(kept)) {}
    [[nodiscard]] std::uint64_t size(ps::object_id id) const { return inside_.size(id); }
    [[nodiscard]] ps::object_version version(ps::object_id id) const { return inside_.version(id); }
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
      note(offset, into.size());
      inside_.read(id, offset, into);
    }
    void read_many(std::span<const ps::read_request> requests, ps::read_listener listener) const
      requires Latency
    {
      for (const ps::read_request& one : requests) note(one.offset, one.into.size());
      inside_.read_many(requests, listener);
    }
    void cancel() const noexcept
      requires Latency
    {
      inside_.cancel();
    }
    void will_need(ps::object_id, std::uint64_t offset, std::uint64_t size) const {
      const std::scoped_lock lock(notes_->busy);
      notes_->hints.push_back({offset, offset + size});
    }

   private:
    void note(std::uint64_t offset, std::uint64_t size) const {
      const std::scoped_lock lock(notes_->busy);
      notes_->reads.push_back({offset, offset + size});
      if (offset < notes_->worn_end && notes_->worn_begin < offset + size)
        throw ps::error(ps::errc::io, "worn out").at_offset(offset);
    }

    stored::session inside_;
    std::shared_ptr<penstock_test::storage_notes> notes_;
  };
  [[nodiscard]] std::span<const std::string> names() const { return inside.names(); }
  [[nodiscard]] session connect() const { return {inside, notes}; }
};

/// A shard in a store, and the places of its members' bytes.
struct noted_shard {
  const store_kind* kind;
  raw_tar tar{};
  std::vector<std::pair<std::string, noted_range>> members{};
  std::shared_ptr<penstock_test::storage_notes> kept = std::make_shared<penstock_test::storage_notes>();
  std::unique_ptr<penstock_test::temp_dir> folder = std::make_unique<penstock_test::temp_dir>();

  noted_shard& add(const std::string& name, const std::string& content) {
    const std::uint64_t begin = tar.bytes.size() + 512;
    tar.member(name, content);
    members.emplace_back(name, noted_range{begin, begin + content.size()});
    return *this;
  }
  template <bool Latency = false>
  [[nodiscard]] auto source() {
    const std::string path = (*folder / "t.tar").string();
    tar.end().save(path);
    ps::webdataset data(noting_store<Latency>{kind->open({path}), kept},
                        {.index = ps::index_policy::transient});
    kept->clear();
    return data;
  }
  [[nodiscard]] noted_range at(std::string_view name) const {
    for (const auto& [called, range] : members)
      if (called == name) return range;
    return {};
  }
  [[nodiscard]] noted_range from_to(std::string_view first, std::string_view last) const {
    return {at(first).begin, at(last).end};
  }
  [[nodiscard]] penstock_test::storage_notes& notes() const { return *kept; }
  /// The reads of members. Without those of headers at both ends, by which a reader compares a shard with its
  /// index once: two, of up to 4 KiB each.
  [[nodiscard]] ranges reads() const {
    ranges all;
    std::size_t begins = 0, ends = 0;
    for (const noted_range& one : kept->reads)
      if (one.begin != 0 && one.end != members.back().second.begin) {
        all.push_back(one);
      } else {
        ++(one.begin == 0 ? begins : ends);
        CHECK(one.end - one.begin <= 4096);
      }
    CHECK(begins <= 1);
    CHECK(ends <= 1);
    return all;
  }
  [[nodiscard]] std::uint64_t bytes_read() const {
    std::uint64_t bytes = 0;
    for (const noted_range& one : reads()) bytes += one.end - one.begin;
    return bytes;
  }
};

/// Distinguishable bytes.
std::string noise(std::size_t size, std::uint64_t seed) {
  ps::rng random(seed, 1, 2);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(256));
  return bytes;
}

/// The bytes of a field of all batches, one after another.
template <ps::fixed_string Name, class Plan>
std::string bytes_of_field(const Plan& plan) {
  std::string all;
  for (auto&& b : plan.epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i)
      for (const std::byte x : ps::get<Name>(b)[i]) all += static_cast<char>(x);
  return all;
}

/// Samples of a small label, a large image, and a large depth that only some plans use.
noted_shard images(const store_kind* kind, std::size_t samples) {
  noted_shard shard{kind};
  for (std::size_t i = 0; i < samples; ++i) {
    const std::string key = "s" + std::to_string(i);
    shard.add(key + ".cls", std::to_string(i % 10));
    shard.add(key + ".depth.npy", noise(50'000, i));
    shard.add(key + ".jpg", noise(20'000, 1000 + i));
    shard.add(key + ".json", noise(100, 2000 + i));
  }
  return shard;
}

TEST_CASE("source/webdataset: hints cover the used members, with one request per run of them in a sample") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard = images(kind, 3);
  const auto data = shard.source();
  const auto hints = [&](const ps::projection& used, std::uint64_t index, std::uint64_t count) {
    const auto reader = data.connect(used);
    shard.notes().clear();
    for (std::uint64_t i = index; i != index + count; ++i) reader.ranges(i, penstock::detail::hint_sink{});
    return shard.notes().hints;
  };
  CHECK(hints({}, 1, 1) == ranges{shard.from_to("s1.cls", "s1.json")});
  CHECK(hints({}, 0, 3) == ranges{shard.from_to("s0.cls", "s0.json"), shard.from_to("s1.cls", "s1.json"),
                                  shard.from_to("s2.cls", "s2.json")});
  CHECK(hints(ps::projection::of<"cls">(), 1, 1) == ranges{shard.at("s1.cls")});
  CHECK(hints(ps::projection::of<"jpg", "json">(), 1, 1) == ranges{shard.from_to("s1.jpg", "s1.json")});
  CHECK(hints(ps::projection::of<"cls", "json">(), 0, 3) == ranges{shard.at("s0.cls"), shard.at("s0.json"),
                                                                   shard.at("s1.cls"), shard.at("s1.json"),
                                                                   shard.at("s2.cls"), shard.at("s2.json")});
  CHECK(hints(ps::projection::of<"depth.npy">(), 2, 1) == ranges{shard.at("s2.depth.npy")});
  CHECK(hints(ps::projection::of<"npy", "txt", "JPG">(), 0, 3).empty());  // a suffix must match exactly
  CHECK(hints(ps::projection::none(), 0, 3).empty());
  CHECK(shard.reads().empty());
}

TEST_CASE("source/webdataset: a plan fetches ahead what it uses, and reads nothing else") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard = images(kind, 40);
  const auto data = shard.source();
  const bool in_order = GENERATE(true, false);
  const auto labels = [&](const auto& source) {
    shard.notes().clear();
    return in_order ? bytes_of_field<"cls">(source | ps::fields<"cls"> | ps::prefetch(8) |
                                            ps::batch(5, ps::ragged) | ps::workers(0))
                    : bytes_of_field<"cls">(source | ps::shuffle(ps::seed(3)) | ps::fields<"cls"> |
                                            ps::prefetch(8) | ps::batch(5, ps::ragged) | ps::workers(0));
  };
  const std::string narrow = labels(data);
  CHECK(narrow.size() == 40);
  CHECK(shard.bytes_read() == 40);
  CHECK(shard.notes().hints.size() == 40);
  for (const noted_range& hint : shard.notes().hints) CHECK(hint.end - hint.begin == 1);

  // That plan after a stage that sees the whole sample.
  shard.notes().clear();
  const auto label = [](const auto& sample) { return ps::text_of(sample.member(0).finish())[0]; };
  std::string whole;
  const auto read = [&](const auto& plan) {
    for (auto&& b : plan.epoch(0)) whole.append(b.begin(), b.end());
  };
  if (in_order)
    read(data | ps::map(label) | ps::prefetch(8) | ps::batch(5) | ps::workers(0));
  else
    read(data | ps::shuffle(ps::seed(3)) | ps::map(label) | ps::prefetch(8) | ps::batch(5) | ps::workers(0));
  CHECK(whole == narrow);
  for (const noted_range& hint : shard.notes().hints) CHECK(hint.end - hint.begin > 70'000);
}

TEST_CASE("source/webdataset: from a store with latency a plan requests what it uses, and nothing else") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard = images(kind, 40);
  const auto data = shard.source<true>();
  const unsigned workers = GENERATE(0u, 2u);
  // the labels are further apart than requests are joined across
  const std::string labels = bytes_of_field<"cls">(data | ps::shuffle(ps::seed(3)) | ps::fields<"cls"> |
                                                   ps::batch(5, ps::ragged) | ps::workers(workers));
  CHECK(labels.size() == 40);
  CHECK(shard.bytes_read() == 40);
  CHECK(shard.notes().hints.empty());
  shard.notes().clear();
  std::size_t numbers = 0;  // decode names what it uses, and needs no fields before it
  for (auto&& b : (data | ps::shuffle(ps::seed(3)) | ps::decode<ps::field<"cls", ps::integer>> |
                   ps::batch(5) | ps::workers(workers))
                      .epoch(0))
    numbers += ps::get<"cls">(b).size();
  CHECK(numbers == 40);
  CHECK(shard.bytes_read() == 40);
}

TEST_CASE("source/webdataset: small members still come with one read, across small unused ones") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard{kind};
  for (const char* key : {"a", "b"}) {
    const std::string k = key;
    shard.add(k + ".txt", noise(300, 1)).add(k + ".cls", "1").add(k + ".json", noise(2000, 2));
    shard.add(k + ".npy", noise(3000, 3)).add(k + ".png", noise(20'000, 4)).add(k + ".id", "17");
  }
  const auto data = shard.source();
  const auto read = [&](const ps::projection& used, std::initializer_list<std::string_view> names) {
    const auto reader = data.connect(used);
    typename decltype(data)::reader::worker worker;
    shard.notes().clear();
    reader.evaluate({0, 1}, worker, [&](const auto& sample) {
      for (const std::string_view name : names)
        for (std::size_t i = 0; i < sample.size(); ++i)
          if (sample.name(i) == name) static_cast<void>(sample.member(i).finish());
    });
    return shard.reads();
  };
  // all of them, if nothing is known
  CHECK(read({}, {"cls", "npy"}) == ranges{shard.from_to("b.txt", "b.id")});
  // from the first used member to the last, with the 2 KB between them, but nothing around them
  CHECK(read(ps::projection::of<"cls", "npy">(), {"cls", "npy"}) == ranges{shard.from_to("b.cls", "b.npy")});
  CHECK(read(ps::projection::of<"cls", "npy">(), {"npy", "cls"}) == ranges{shard.from_to("b.cls", "b.npy")});
  // 20 KB between them cost more than a second read
  CHECK(read(ps::projection::of<"npy", "id">(), {"npy", "id"}) ==
        ranges{shard.at("b.npy"), shard.at("b.id")});
  CHECK(read(ps::projection::of<"npy", "id">(), {"id", "npy"}) ==
        ranges{shard.at("b.id"), shard.at("b.npy")});
  // a member outside the projection can still be read
  CHECK(read(ps::projection::of<"cls">(), {"png", "cls"}) == ranges{shard.from_to("b.cls", "b.png")});
}

TEST_CASE("source/webdataset: in order, a read includes the used members of later samples") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard{kind};
  const std::size_t samples = 200;
  std::string expected;
  for (std::size_t i = 0; i < samples; ++i) {
    const std::string key = "s" + std::to_string(i), text = noise(500, i);
    shard.add(key + ".json", noise(700, i + 1)).add(key + ".txt", text);
    expected += text;
  }
  const auto data = shard.source();
  const std::string found =
      bytes_of_field<"txt">(data | ps::fields<"txt"> | ps::batch(10, ps::ragged) | ps::workers(0));
  CHECK(found == expected);
  CHECK(shard.reads().size() < 20);
}

TEST_CASE("source/webdataset: any used members, in any order, have the right bytes") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard{kind};
  std::vector<std::vector<std::string>> contents;
  ps::rng random(5, 6, 7);
  for (std::size_t i = 0; i < 40; ++i) {
    contents.emplace_back();
    for (std::size_t m = 0; m < 5; ++m) {
      const std::uint64_t length = random.below(5);
      const auto size =
          static_cast<std::size_t>(length == 0 ? 0 : random.below(length == 1 ? 60'000 : 3'000));
      contents.back().push_back(noise(size, 10 * i + m));
      shard.add("s" + std::to_string(i) + ".m" + std::to_string(m), contents.back().back());
    }
  }
  const auto data = shard.source();
  const ps::projection each[] = {{},
                                 ps::projection::of<"m0", "m4">(),
                                 ps::projection::of<"m1", "m2", "m3">(),
                                 ps::projection::of<"m2">(),
                                 ps::projection::none()};
  for (const ps::projection& used : each) {
    for (const bool in_order : {true, false}) {
      const auto reader = data.connect(used);
      typename decltype(data)::reader::worker worker;
      std::size_t wrong = 0;
      for (std::uint64_t i = 0; i < data.size(); ++i) {
        const std::uint64_t index = in_order ? i : random.below(data.size());
        reader.evaluate({0, index}, worker, [&](const auto& sample) {
          std::vector<std::pair<std::size_t, ps::bytes_view>> views;
          for (std::size_t k = 0; k < sample.size(); ++k) {
            const auto m = static_cast<std::size_t>(random.below(sample.size()));
            if (random.chance(0.3) && !used.uses(sample.name(m))) continue;
            views.emplace_back(m, sample.member(m).finish());
          }
          for (const auto& [m, view] : views) wrong += ps::text_of(view) != contents[index][m] ? 1 : 0;
        });
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("source/webdataset: an unused member that cannot be read does no harm, a used one does") {
  const store_kind* const kind = GENERATE(from_range(penstock_test::stores_here()));
  INFO(kind->name);
  noted_shard shard = images(kind, 4);
  const auto data = shard.source();
  shard.notes().worn_begin = shard.at("s2.jpg").begin;
  shard.notes().worn_end = shard.at("s2.jpg").end;
  const auto plan = [&](const auto& chosen) {
    return data | chosen | ps::prefetch(2) | ps::batch(2, ps::ragged) | ps::workers(1);
  };
  CHECK(bytes_of_field<"cls">(plan(ps::fields<"cls", "json">)) == "0123");
  CHECK(bytes_of_field<"cls">(plan(ps::fields<"cls", ps::optional<"txt">>)) == "0123");
  const auto said = penstock_test::error_of([&] { bytes_of_field<"cls">(plan(ps::fields<"cls", "jpg">)); });
  CHECK_THAT(said, penstock_test::contains("worn out") && penstock_test::contains("key s2"));
  const auto missing =
      penstock_test::error_of([&] { bytes_of_field<"cls">(plan(ps::fields<"cls", "txt">)); });
  CHECK_THAT(missing, penstock_test::contains("it has: cls, depth.npy, jpg, json"));
}

}  // namespace webdataset_projection_test
