// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indexes that are made once and put beside the shards of a store, and what a second machine then asks for.

#include <penstock/source/index_shards.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace index_in_s3_test {

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;
using far_data = ps::webdataset<ps::s3>;

/// A store, and the requests to it.
struct store {
  seaweed_server server;
  fault_proxy proxy{server.port()};
  std::size_t forgotten = 0;

  [[nodiscard]] ps::s3_options options() const {
    ps::s3_options all = s3_at(server);
    all.place.endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
    return all;
  }
  [[nodiscard]] ps::s3 at(std::string_view pattern) const { return ps::s3(pattern, options()); }
  /// Shards of 40 samples, far apart, so that a scan would ask for much.
  void write(const std::string& pattern, bool index) const {
    ps::shard_writer out(pattern, ps::s3_writer(s3_at(server)), {.maxcount = 40, .tar = {.index = index}});
    for (int i = 0; i < 120; ++i) out.write(std::to_string(i), {{"txt", std::string(20'000, 'x')}});
    (void)out.close();
  }
  void forget() { forgotten = proxy.seen().size(); }
  /// Those since `forget` with a method, for names that end so.
  [[nodiscard]] std::size_t asked(std::string_view method, std::string_view ending) const {
    const auto all = proxy.seen();
    return static_cast<std::size_t>(
        std::count_if(all.begin() + static_cast<std::ptrdiff_t>(forgotten), all.end(),
                      [&](const auto& one) { return one.method == method && one.target.ends_with(ending); }));
  }
  [[nodiscard]] std::size_t asked() const { return proxy.seen().size() - forgotten; }
};

/// The size of the first member of a sample.
std::size_t read_at(const far_data& data, std::uint64_t index) {
  const auto reader = data.connect();
  far_data::reader::worker worker;
  std::size_t size = 0;
  reader.evaluate({0, index}, worker, [&](const auto& s) { size = s.member(0).finish().size(); });
  return size;
}

}  // namespace index_in_s3_test

TEST_CASE(
    "source/index_in_s3: index_shards puts the indexes into the store, where a second machine finds them") {
  using namespace index_in_s3_test;
  if (!have_seaweed()) return;
  const deadline limit("indexes in a store", 120s);
  store here;
  here.write("bucket/a-%d.tar", false);
  const temp_dir first, second;
  const std::string pattern = "bucket/a-{0..2}.tar";
  const auto fingerprint = far_data(here.at(pattern), {.index_folder = first.path().string()}).fingerprint();

  CHECK(ps::index_shards(here.at(pattern), ps::s3_writer(here.options())) == ps::indexed_shards{3, 0});
  here.forget();
  CHECK(ps::index_shards(here.at(pattern), ps::s3_writer(here.options())) == ps::indexed_shards{0, 3});
  CHECK(here.asked("PUT", "") + here.asked("GET", ".tar") == 0);

  here.forget();
  const ps::webdataset_options there{.index = ps::index_policy::require,
                                     .index_folder = second.path().string()};
  const far_data data(here.at(pattern), there);
  CHECK(data.size() == 120);
  CHECK(data.fingerprint() == fingerprint);
  CHECK(here.asked("GET", ".penstock-index") == 3);
  CHECK(here.asked("GET", ".tar") == 0);  // no header is read
  CHECK(here.asked("GET", ".idx") == 0);  // nothing else is looked for
  CHECK(here.asked() <= 9);               // a version of each shard and of each index, and the index
  CHECK(read_at(data, 119) == 20'000);

  here.forget();
  CHECK(far_data(here.at(pattern), there).size() == 120);
  CHECK(here.asked() == 3);  // are they the same shards?
}

TEST_CASE("source/index_in_s3: shard_writer puts them there, too, with the versions of the shards") {
  using namespace index_in_s3_test;
  if (!have_seaweed()) return;
  const deadline limit("indexes in a store", 120s);
  store here;
  here.write("bucket/b-%d.tar", true);
  const temp_dir folder;
  here.forget();
  const far_data data(here.at("bucket/b-{0..2}.tar"),
                      {.index = ps::index_policy::require, .index_folder = folder.path().string()});
  CHECK(data.size() == 120);
  CHECK(here.asked("GET", ".penstock-index") == 3);
  CHECK(here.asked("GET", ".tar") == 0);
  CHECK(ps::index_shards(here.at("bucket/b-{0..2}.tar"), ps::s3_writer(here.options())) ==
        ps::indexed_shards{0, 3});
}

TEST_CASE(
    "source/index_in_s3: with a manifest in the store, nothing is asked before a shard's first sample") {
  using namespace index_in_s3_test;
  if (!have_seaweed()) return;
  const deadline limit("a manifest in a store", 120s);
  store here;
  here.write("bucket/c-%d.tar", true);
  const temp_dir first, second;
  const std::string pattern = "bucket/c-{0..2}.tar";
  {
    const far_data data(here.at(pattern), {.index_folder = first.path().string()});
    const std::string text = to_string(data.manifest());
    ps::s3_writer out(here.options());
    out.open("bucket/c.manifest");
    out.write(ps::bytes_of(text));
    (void)out.finish();
  }
  const ps::manifest known = ps::read_manifest(here.at("bucket/c.manifest"));
  here.forget();
  const far_data data(here.at(pattern), known, {.index_folder = second.path().string()});
  CHECK(data.size() == 120);
  CHECK(here.asked() == 0);
  CHECK(read_at(data, 50) == 20'000);
  CHECK(here.asked("GET", "c-0.tar") + here.asked("GET", "c-2.tar") == 0);
  CHECK(here.asked("HEAD", "c-0.tar") + here.asked("HEAD", "c-2.tar") == 0);
  CHECK(here.asked("GET", "c-1.tar.penstock-index") == 1);
}
