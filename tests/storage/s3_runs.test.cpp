// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>

#include <penstock/observe/counters.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/retrying.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/server_process.hpp"
#include "support/temp_dir.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

/// Ten shards of 30 samples: more than are asked for one by one.
std::vector<std::pair<std::string, std::string>> s3_samples() {
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t i = 0; i < 300; ++i)
    all.emplace_back(std::to_string(i),
                     std::string(1000 + i % 30 * 137, static_cast<char>('a' + (i + i / 30) % 26)));
  return all;
}
std::vector<s3_server::object> s3_shards(const temp_dir& folder) {
  ps::shard_writer out((folder / "a-%d.tar").string(), {.maxcount = 30});
  for (const auto& [key, txt] : s3_samples()) out.write(key, {{"txt", txt}});
  (void)out.close();
  std::vector<s3_server::object> all;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "a-" + std::to_string(i) + ".tar";
    all.push_back({"runs/" + name, text_in(folder / name)});
  }
  return all;
}
/// Little is read ahead, so that there are requests to come at any time.
template <class Source>
auto s3_loader(const Source& source) {
  return source | ps::shuffle(ps::seed(7)) | ps::fields<"txt"> | ps::prefetch(16) | ps::batch(8, ps::ragged) |
         ps::prefetch(2) | ps::workers(2);
}
template <class Batch>
void s3_append(std::string& all, const Batch& batch) {
  for (std::size_t i = 0; i < batch.valid_size(); ++i) {
    const auto text = ps::get<"txt">(batch)[i];
    all.append(reinterpret_cast<const char*>(text.data()), text.size()).append("\n");
  }
}

}  // namespace

TEST_CASE("storage/s3: a run equals that over files, resumed, under faults, and after the server's death") {
  if (!have_seaweed()) return;
  const deadline limit("runs", 180s);
  seaweed_server server;
  const temp_dir folder;
  server.put("bucket", s3_shards(folder));
  std::string expected;
  {
    auto run = s3_loader(ps::webdataset((folder / "a-{0..9}.tar").string())).open();
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch) s3_append(expected, b);
  }
  const std::string pattern = "bucket/runs/a-{0..9}.tar";
  std::string got, state;
  {
    const auto loader = s3_loader(ps::webdataset(ps::s3(pattern, s3_at(server))));
    auto run = loader.open();
    std::size_t batches = 0;
    for (auto epoch : run.epochs(2)) {
      for (auto&& b : epoch) {
        s3_append(got, b);
        if (++batches != 50) continue;
        state = ps::to_string(run.state());
        break;
      }
      if (!state.empty()) break;
    }
    const std::string said =
        state + ps::report(run.counters()) + ps::webdataset(ps::s3(pattern, s3_at(server))).describe();
    INFO(said);
    CHECK(said.find(server.key()) == std::string::npos);
    CHECK(said.find(server.secret()) == std::string::npos);
    auto rest = loader.open(ps::state_from_string(state));
    for (auto epoch : rest.epochs(2))
      for (auto&& b : epoch) s3_append(got, b);
    got.resize(expected.size());
    CHECK((got == expected));
  }

  // Shards that are written into the store are those that were read.
  {
    ps::shard_writer out("bucket/written/a-%d.tar", ps::s3_writer(s3_at(server)), {.maxcount = 30});
    for (const auto& [key, txt] : s3_samples()) out.write(key, {{"txt", txt}});
    const ps::manifest made = out.close();
    const ps::webdataset again(ps::s3("bucket/written/a-{0..9}.tar", s3_at(server)));
    CHECK(again.fingerprint() == made.fingerprint());
    CHECK(made.fingerprint() == ps::webdataset((folder / "a-{0..9}.tar").string()).fingerprint());
  }

  fault_proxy proxy(server.port());
  proxy.sometimes(network_fault::slow_down(), {.one_in = 11, .seed = 1, .max_for_one_request = 2});
  proxy.sometimes(network_fault::server_error(), {.one_in = 13, .seed = 2, .max_for_one_request = 2});
  proxy.sometimes(network_fault::cut(500), {.one_in = 17, .seed = 3, .max_for_one_request = 2});
  proxy.sometimes(network_fault::reset_before_answer(), {.one_in = 19, .seed = 4, .max_for_one_request = 2});
  ps::s3_options options = s3_at(server);
  options.place.endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
  const ps::retrying steady(ps::s3(pattern, options), {.attempts = 1000,
                                                       .initial_backoff = 5ms,
                                                       .max_backoff = 500ms,
                                                       .max_unreachable_time = 150s,
                                                       .budget = 0});
  got.clear();
  auto run = s3_loader(ps::webdataset(steady)).open();
  proxy.script({network_fault::slow_down()});
  std::size_t batches = 0;
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) {
      s3_append(got, b);
      if (++batches != 10) continue;
      server.kill();
      server.start();
    }
  CHECK((got == expected));
  CHECK(proxy.faults() > 0);
  CHECK(run.counters().storage.slow_downs > 0);
}
