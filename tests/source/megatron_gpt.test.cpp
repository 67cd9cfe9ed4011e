// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/megatron_gpt.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/megatron_files.hpp"
#include "support/test_data.hpp"

#include <penstock/core/destination.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

namespace megatron_gpt_test {

using token = std::uint16_t;
using windows = ps::token_windows;
using options = ps::megatron_gpt_options;

static_assert(ps::indexed_source<ps::megatron_gpt_source<token, windows, ps::mapped_file>>);
static_assert(ps::static_array_expression<
              ps::megatron_gpt_source<token, ps::token_window<8>, ps::mapped_file>::element>);

using penstock_test::megatron_oracles;

struct megatron_folder : penstock_test::oracle_folder {
  megatron_folder() : oracle_folder(megatron_oracles) {}
};

/// The files as they are in memory, where `change` may change one of them.
ps::memory_files in_memory(
    std::string_view changed = "", auto&& change = [](byte_vector&) {}) {
  ps::memory_files memory;
  for (const auto& one : megatron_oracles) {
    if (one.path.starts_with("more.")) continue;  // another dataset
    byte_vector bytes = codec_test::to_vector(one.bytes);
    if (one.path == changed) change(bytes);
    memory.add(std::string(one.path), bytes);
  }
  return memory;
}
ps::memory_files in_memory() {
  return in_memory("", [](byte_vector&) {});
}

/// All samples; checks that written and viewed ones are equal.
template <class Source, class T = typename Source::element::value_type>
std::vector<std::vector<T>> all_of(const Source& source) {
  std::vector<std::vector<T>> all;
  bool same = true;
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& sample) {
      std::vector<T> values(static_cast<std::size_t>(sample.shape().elements()));
      sample.write_to(ps::destination(values.data(), sample.shape()));
      const auto view = sample.finish();
      same = same && std::equal(view.begin(), view.end(), values.begin(), values.end());
      all.push_back(values);
    });
  REQUIRE(same);
  return all;
}
template <class T>
std::uint64_t hash_of(const std::vector<std::vector<T>>& all) {
  std::uint64_t hash = 0;
  for (const auto& sample : all)
    for (const T one : sample) hash = hash * 6364136223846793005u + static_cast<std::uint64_t>(one) + 1;
  return hash;
}

/// A line of cases.txt.
struct oracle_case {
  std::string prefix;
  windows window;
  options asked;
  std::uint64_t size = 0, hash = 0;
};
std::vector<oracle_case> cases() {
  std::vector<oracle_case> all;
  std::istringstream lines{std::string(penstock_test::megatron_oracle("cases.txt"))};
  oracle_case next;
  std::string part;
  while (lines >> next.prefix >> next.window.length >> next.window.targets >> next.asked.samples >>
         next.asked.seed >> next.asked.split >> part >> next.size >> next.hash) {
    next.asked.part = part == "train" ? ps::megatron_part::train : ps::megatron_part::valid;
    all.push_back(next);
  }
  return all;
}

/// What Megatron wrote in its cache for these.
const windows of_cache{.length = 16};
const options asked_of_cache{.samples = 200, .seed = 7, .split = "80,20,0"};
options from_cache(std::string folder = "") {
  options made;
  made.cache = std::move(folder) + "cache-GPTDataset-train";
  return made;
}

codec_test::thrown refusal(const ps::memory_files& memory, const options& asked, windows window = of_cache) {
  return caught([&] { static_cast<void>(ps::megatron_gpt<token>(memory, window, asked)); });
}

}  // namespace megatron_gpt_test

TEST_CASE("source/megatron_gpt: every sample is Megatron's") {
  using namespace megatron_gpt_test;
  const megatron_folder folder;
  const auto all = cases();
  REQUIRE(all.size() > 60);
  for (const oracle_case& one : all) {
    if (one.prefix != "made") continue;
    CAPTURE(one.window.length, one.window.targets, one.asked.samples, one.asked.seed, one.asked.split);
    const auto source = ps::megatron_gpt<token>(folder(one.prefix), one.window, one.asked);
    REQUIRE(source.size() == one.size);
    REQUIRE(hash_of(all_of(source)) == one.hash);
    REQUIRE(hash_of(all_of(ps::megatron_gpt<token>(in_memory(), one.window, one.asked))) == one.hash);
  }
}

TEST_CASE("source/megatron_gpt: every sample of real datasets is Megatron's") {
  using namespace megatron_gpt_test;
  const auto found = penstock_test::test_data("tokens/megatron");
  if (!found) return;
  int compared = 0;
  const auto compare = [&](const oracle_case& one, const auto& source) {
    REQUIRE(source.size() == one.size);
    CHECK(hash_of(all_of(source)) == one.hash);
    ++compared;
  };
  for (const oracle_case& one : cases()) {
    if (one.prefix == "made") continue;
    CAPTURE(one.prefix, one.window.length, one.asked.samples, one.asked.split);
    const std::string prefix = (*found / one.prefix).string();
    if (one.prefix.starts_with("ag_news"))
      compare(one, ps::megatron_gpt<std::int32_t>(prefix, one.window, one.asked));
    else
      compare(one, ps::megatron_gpt<token>(prefix, one.window, one.asked));
  }
  CHECK(compared == 5);
}

TEST_CASE("source/megatron_gpt: Megatron's cache gives the same samples as what Megatron was told") {
  using namespace megatron_gpt_test;
  const megatron_folder folder;
  const auto told = ps::megatron_gpt<token>(folder("made"), of_cache, asked_of_cache);
  const auto read = ps::megatron_gpt<token>(folder("made.idx"), of_cache, from_cache(folder("") + "/"));
  const auto want = all_of(told);
  CHECK(all_of(read) == want);
  CHECK(read.fingerprint() == told.fingerprint());
  const auto kept = ps::megatron_gpt<token>(in_memory(), ps::token_window<16>{}, from_cache());
  CHECK(all_of(kept) == want);
  CHECK(told.epochs() == 4);
  CHECK(told.tokens() == kept.tokens());
  CHECK_THAT(told.describe(),
             contains("211 samples of 16 + 1 tokens") && contains("seed 7") && contains("train of 80,20,0"));
  CHECK_THAT(kept.describe(), contains("as in cache-GPTDataset-train"));
  options another = asked_of_cache;
  another.seed = 8;
  CHECK(ps::megatron_gpt<token>(in_memory(), of_cache, another).fingerprint() != told.fingerprint());
}

TEST_CASE("source/megatron_gpt: a run goes on where Megatron was, on its ranks") {
  using namespace megatron_gpt_test;
  // MegatronPretrainingSampler: each rank takes its micro-batch out of `micro batch * ranks` samples in order
  const auto source = ps::megatron_gpt<token>(in_memory(), ps::token_window<16>{}, asked_of_cache);
  const auto want = all_of(source);
  constexpr std::size_t ranks = 3, each = 4, consumed = 60;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    std::vector<token> mine;
    for (std::uint64_t at = consumed + rank * each; at + each <= want.size(); at += ranks * each)
      for (std::uint64_t i = at; i < at + each; ++i) mine.insert(mine.end(), want[i].begin(), want[i].end());
    const auto got = penstock_test::values_of(
        source | ps::skip(consumed) | ps::shard(rank, ranks) | ps::batch(each, ps::tail::drop), 2);
    CAPTURE(rank);
    REQUIRE(got.size() > 10 * each * 17);
    CHECK(std::equal(got.begin(), got.end(), mine.begin()));
  }
}

TEST_CASE("source/megatron_gpt: pieces of other documents have other numbers") {
  using namespace megatron_gpt_test;
  const auto plain = ps::megatron_gpt<token>(in_memory(), ps::token_window<30>{}, asked_of_cache);
  const auto numbered =
      ps::megatron_gpt<token>(in_memory(), ps::with_document_ids{ps::token_window<30>{}}, asked_of_cache);
  CHECK(numbered.fingerprint() == plain.fingerprint());
  const auto want = all_of(plain);
  const auto reader = numbered.connect();
  decltype(numbered)::reader::worker worker;
  for (std::uint64_t i = 0; i < numbered.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& sample) {
      const auto tokens = get<"tokens">(sample).finish();
      const auto ids = get<"document_ids">(sample).finish();
      REQUIRE(std::equal(tokens.begin(), tokens.end(), want[ps::detail::to_size(i)].begin()));
      // a token is the number of its place in the file, so what does not follow is of another document
      for (std::size_t k = 1; k < 31; ++k) {
        const int step = tokens.data()[k] - tokens.data()[k - 1];
        REQUIRE(
            (ids.data()[k] - ids.data()[k - 1] == 1 || (step == 1 && ids.data()[k] == ids.data()[k - 1])));
      }
      REQUIRE(ids.data()[0] == 0);
    });
}

TEST_CASE("source/megatron_gpt: keys, ranges, and evaluating allocates nothing") {
  using namespace megatron_gpt_test;
  const megatron_folder folder;
  const auto source = ps::megatron_gpt<token>(folder("made"), ps::token_window<30>{}, asked_of_cache);
  const auto reader = source.connect();
  CHECK_THAT(reader.key(7), contains("made.bin:7"));
  CHECK(reader.bytes_per_sample() == 62);
  std::uint64_t bytes = 0;
  reader.ranges(7, [&](auto&, ps::object_id object, std::uint64_t, std::uint64_t size) {
    CHECK(object == 0);
    bytes += size;
  });
  CHECK(bytes == 62);
  decltype(source)::reader::worker worker;
  std::vector<token> row(31);
  const auto all = [&] {
    for (std::uint64_t i = source.size(); i-- > 0;)
      reader.evaluate({0, i}, worker,
                      [&](const auto& one) { one.write_to(ps::destination(row.data(), one.shape())); });
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
}

TEST_CASE("source/megatron_gpt: a cache of something else is refused with file and offset") {
  using namespace megatron_gpt_test;
  CHECK(refusal(in_memory(), from_cache()).line.empty());
  const auto other = refusal(in_memory(), from_cache(), windows{.length = 17});
  CHECK(other.code == ps::errc::format);
  CHECK_THAT(other.line,
             contains("sample_index.npy") && contains("(212, 2)") && contains("another sequence length"));
  const auto without_extra = refusal(in_memory(), from_cache(), windows{.length = 16, .targets = 0});
  CHECK(without_extra.code == ps::errc::format);

  const auto changed = [&](std::string_view which, std::size_t from_end, std::uint8_t value) {
    const std::string name = "cache-GPTDataset-train-" + std::string(which) + "_index.npy";
    return refusal(
        in_memory(name, [&](byte_vector& bytes) { bytes[bytes.size() - from_end] = std::byte{value}; }),
        from_cache());
  };
  CHECK_THAT(changed("document", 4, 40).line,
             contains("there is no document 40, only 40") && contains("offset"));
  CHECK_THAT(changed("document", 1, 0x80).line, contains("there is no document"));
  CHECK_THAT(changed("sample", 4, 99).line, contains("sample 211 begins at (") && contains("99)"));
  CHECK_THAT(changed("shuffle", 4, 255).line, contains("sample 255 of 211 is none"));
  CHECK_THAT(refusal(in_memory("cache-GPTDataset-train-shuffle_index.npy",
                               [](byte_vector& bytes) {
                                 std::copy(bytes.end() - 8, bytes.end() - 4, bytes.end() - 4);
                               }),
                     from_cache())
                 .line,
             contains("comes twice") && contains("shuffle_index.npy"));
  for (const char* const which : {"document", "sample", "shuffle"}) {
    CAPTURE(which);
    const std::string name = "cache-GPTDataset-train-" + std::string(which) + "_index.npy";
    for (const std::size_t cut : {1u, 4u, 100u, 130u}) {
      const auto short_file = refusal(
          in_memory(name, [&](byte_vector& bytes) { bytes.resize(bytes.size() - cut); }), from_cache());
      CHECK(short_file.code == ps::errc::format);
      CHECK_THAT(short_file.line, contains(name));
    }
    CHECK(refusal(in_memory(name, [](byte_vector& bytes) { bytes.clear(); }), from_cache()).code ==
          ps::errc::format);
  }
  options none;
  none.cache = "elsewhere";
  const auto missing = refusal(in_memory(), none);
  CHECK(missing.code == ps::errc::argument);
  CHECK_THAT(missing.line, contains("elsewhere-document_index.npy"));
}

TEST_CASE("source/megatron_gpt: impossible options are refused with a reason") {
  using namespace megatron_gpt_test;
  const auto line = [](const options& asked, windows window = of_cache) {
    const auto thrown = refusal(in_memory(), asked, window);
    CHECK(thrown.code == ps::errc::argument);
    return thrown.line;
  };
  CHECK_THAT(line({.split = "1,2,3,4"}), contains("up to three numbers"));
  CHECK_THAT(line({.split = "1.2.3"}), contains("up to three numbers"));
  CHECK_THAT(line({.split = "a"}), contains("has no parts"));
  CHECK_THAT(line({.split = "0,0"}), contains("has no parts"));
  CHECK_THAT(line({.split = "1,0,0", .part = ps::megatron_part::test}),
             contains("no tokens are in documents"));
  CHECK_THAT(line({.seed = std::uint64_t{1} << 32}), contains("[0, 2^32)"));
  CHECK_THAT(line({.samples = ~std::uint64_t{0}}), contains("too many"));
  CHECK_THAT(line({.samples = 0xfffffff0}, {.length = 0x7ffffff0}), contains("too many places"));
  CHECK_THAT(line({}, {.length = 5000}), contains("less than the 5001 of a sample"));
  CHECK_THAT(line({}, {.length = 0}), contains("[1, 2^31 - 2]"));
  CHECK_THAT(line({}, {.length = 8, .targets = 2}), contains("one extra token or none"));
  CHECK_THAT(line({}, {.length = 8, .stride = 4}), contains("leave out stride"));
  CHECK_THAT(line({}, {.length = 8, .within_documents = true}), contains("within_documents"));
  ps::memory_files two = in_memory();
  two.add("more.bin", codec_test::to_vector("12"));
  CHECK_THAT(refusal(two, {}).line, contains("'made.bin' and 'more.bin'"));
  CHECK_THAT(refusal(ps::memory_files().add("x.bin", codec_test::to_vector("12")), {}).line,
             contains("x.idx"));
  CHECK_THAT(refusal(ps::memory_files().add("x", codec_test::to_vector("12")), {}).line, contains("no .bin"));
  CHECK(refusal(in_memory("made.bin", [](byte_vector& bytes) { bytes.pop_back(); }), {}).code ==
        ps::errc::format);
}
