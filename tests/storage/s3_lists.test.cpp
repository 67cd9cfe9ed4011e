// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is asked of a store before the first sample, and what lists tell.
#include <penstock/storage/s3.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/s3/requests/stored_objects.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fake_s3.hpp"
#include "support/s3_session.hpp"
#include "support/server_process.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

constexpr int s3_many = 25;

std::string s3_sample(int i, char mark) { return std::string(400, mark) + std::to_string(i); }
/// Shards of four samples.
std::vector<std::pair<std::string, std::string>> s3_tars(const temp_dir& folder, char mark = 'a') {
  ps::shard_writer out((folder / "t-%02d.tar").string(), {.maxcount = 4});
  for (int i = 0; i < 4 * s3_many; ++i) out.write(std::to_string(i), {{"txt", s3_sample(i, mark)}});
  (void)out.close();
  std::vector<std::pair<std::string, std::string>> all;
  for (int i = 0; i < s3_many; ++i) {
    const std::string name = "t-" + std::string(i < 10 ? "0" : "") + std::to_string(i) + ".tar";
    all.emplace_back("w/" + name, text_in(folder / name));
  }
  return all;
}
/// Nothing is read ahead, so that a batch's requests are those of its samples.
template <class Source>
std::string s3_first_batch(const Source& source) {
  auto run = (source | ps::shuffle(ps::seed(3)) | ps::fields<"txt"> | ps::prefetch(0) |
              ps::batch(6, ps::ragged) | ps::workers(2))
                 .open();
  std::string got;
  for (auto&& b : run) {
    for (std::size_t i = 0; i < b.valid_size(); ++i) {
      const auto text = ps::get<"txt">(b)[i];
      got.append(reinterpret_cast<const char*>(text.data()), text.size()).append("\n");
    }
    break;
  }
  return got;
}
std::vector<std::string> s3_names(const std::string& begin, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("bucket/" + begin + std::to_string(i));
  return names;
}

}  // namespace

TEST_CASE("storage/s3: from opening to the first batch there is one list, and the samples' own reads") {
  const deadline limit("requests of a start");
  const temp_dir folder;
  fake_s3 store(10);
  for (auto& [key, bytes] : s3_tars(folder)) store.put(key, bytes);
  store.put("w/zzz", "another");
  const ps::s3_options options = s3_at(store.endpoint());
  const ps::s3 shards("bucket/w/t-{00..24}.tar", options);
  const ps::webdataset_options kept{.index_folder = (folder / "indexes").string()};
  const std::string expected = s3_first_batch(ps::webdataset((folder / "t-{00..24}.tar").string()));

  // Without indexes: two lists, of shards and of indexes beside them, and the scans.
  (void)ps::webdataset(shards, kept);
  CHECK(store.heads() == 0);
  CHECK(store.lists() == 2 * 3);
  const std::size_t pages = 3;

  store.clear_requests();
  const ps::webdataset source(shards, kept);
  CHECK(store.all() == pages);
  CHECK((s3_first_batch(source) == expected));
  CHECK(store.lists() == pages);
  CHECK(store.heads() == 0);
  // As far as workers get before the run is destroyed, each sample is read once.
  CHECK(store.all() <= pages + 4 * s3_many);

  // Another run, and one of a manifest, ask for nothing but samples; also behind other storages.
  const auto no_question = [&](const auto& from) {
    store.clear_requests();
    CHECK((s3_first_batch(from) == expected));
    CHECK(store.lists() == 0);
    CHECK(store.heads() == 0);
  };
  no_question(source);
  no_question(ps::webdataset(shards, source.manifest(), kept));
  no_question(ps::webdataset(ps::retrying(shards), source.manifest(), kept));
  no_question(ps::webdataset(ps::any_of<ps::s3, ps::http>(shards), source.manifest(), kept));

  // Shards that were replaced between two runs, and other ones than the manifest's, are an error of the run.
  // A dataset that is opened anew has the new ones, with the same storage.
  const temp_dir others;
  for (auto& [key, bytes] : s3_tars(others, 'b')) store.put(key, bytes);
  const auto replaced = [&](const auto& from) {
    const ps::error e = s3_error_of([&] { (void)s3_first_batch(from); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs());
    CHECK(says(e, "replaced after the dataset was opened"));
    CHECK(says(e, "s3://bucket/w/t-"));
  };
  replaced(source);
  replaced(ps::webdataset(shards, source.manifest(), kept));
  CHECK((s3_first_batch(ps::webdataset(shards, kept)) ==
         s3_first_batch(ps::webdataset((others / "t-{00..24}.tar").string()))));
}

TEST_CASE("storage/s3: sources of plain files ask for nothing either when a run begins") {
  const deadline limit("requests of tokens");
  fake_s3 store;
  for (int i = 0; i < 12; ++i) store.put("l/" + std::to_string(i), std::string(64, 'a'));
  const auto source = ps::raw_tokens<std::uint16_t>(ps::s3(s3_names("l/", 12), s3_at(store.endpoint())),
                                                    ps::token_window<7>{});
  store.clear_requests();
  auto run = (source | ps::batch(4) | ps::workers(1)).open();
  std::size_t count = 0;
  for (auto&& b : run) count += b.valid_size();
  CHECK(count == source.size());
  CHECK(store.all() > 0);
  CHECK(store.lists() == 0);
  CHECK(store.heads() == 0);
}

TEST_CASE("storage/s3: what a session is told to expect, it finds or fails") {
  const deadline limit("expectations");
  fake_s3 store;
  store.put("a", std::string(1000, 'a'));
  const ps::s3 where({"bucket/a"}, s3_at(store.endpoint()));
  std::optional<std::string> asked;  // If-Match of the last request
  store.set_hook([&](const web_request& request) {
    asked = request.header("If-Match");
    return std::optional<std::string>();
  });
  const ps::object_version there = where.connect().version(0);
  store.clear_requests();
  {
    const auto session = where.connect();
    CHECK(session.expect(0, there));
    CHECK(session.expect(0, there));
    CHECK(session.version(0) == there);
    CHECK(store.all() == 0);
    CHECK_FALSE(session.expect(0, {there.size, there.stamp + 1}));
    CHECK_FALSE(session.expect(0, {there.size + 1, there.stamp}));
    CHECK_FALSE(session.expect(1, there));
    CHECK((s3_read(session, 0, 0, 10) == std::string(10, 'a')));
    CHECK(asked == "");
    CHECK((s3_read(session, 0, 10, 10) == std::string(10, 'a')));
    CHECK(asked != "");  // the first answer's
    CHECK(session.version(0) == there);
    CHECK(store.all() == 2);
    store.put("a", std::string(1000, 'b'));
    CHECK(says(s3_error_of([&] { (void)s3_read(session, 0, 10, 10); }), "replaced"));
  }
  for (const ps::object_version wrong : {there, ps::object_version{900, there.stamp}}) {
    const auto session = where.connect();
    CHECK(session.expect(0, wrong));
    for (int i = 0; i < 2; ++i) {
      const ps::error e = s3_error_of([&] { (void)s3_read(session, 0, 0, 10); });
      CHECK(e.code() == ps::errc::io);
      CHECK(e.recurs());
      CHECK(says(e, "replaced"));
    }
  }
  const auto session = where.connect();
  CHECK_FALSE(session.expect(0, {1000, 0}));  // a stamp that says nothing
  CHECK(session.version(0).size == 1000);
}

TEST_CASE("storage/s3: what a list that ended does not have is not there, and nobody asks again") {
  const deadline limit("missing objects");
  fake_s3 store(4);
  for (int i = 0; i < 12; i += 2) store.put("m/" + std::to_string(i), "here");
  store.put("m//x", "here, under a name that some stores list in another way");
  std::vector<std::string> names = s3_names("m/", 12);
  names.push_back("bucket/m//y");
  const ps::s3 where(names, s3_at(store.endpoint()));
  const auto session = where.connect();
  for (unsigned i = 0; i < 12; ++i) {
    if (i % 2 == 0) {
      CHECK(session.size(i) == 4);
      continue;
    }
    const ps::error e = s3_error_of([&] { (void)session.size(i); });
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs());
    CHECK(says(e, "NoSuchKey"));
    CHECK(says(e, names[i]));
  }
  CHECK(store.lists() == 2);
  CHECK(store.all() == 2);
  CHECK(says(s3_error_of([&] { (void)session.size(12); }), "NoSuchKey"));
  CHECK(store.all() == 4);  // HEAD and GET
  // A session that begins later looks again.
  store.put("m/1", "by now");
  CHECK(where.connect().size(1) == 6);
}

TEST_CASE("storage/s3: a list ends once all are found, or when too many others have gone by") {
  const deadline limit("long lists");
  using search = ps::detail::s3::bucket_search;
  CHECK(search::max_listed(9) == 10'090);
  fake_s3 store;
  for (int i = 0; i < 9; ++i) store.put("k/" + std::to_string(i), "x");
  for (int i = 0; i < 11'000; ++i) store.put("k/0/" + std::to_string(i), "");
  const auto session = ps::s3(s3_names("k/", 9), s3_at(store.endpoint())).connect();
  CHECK(session.size(0) == 1);
  CHECK(store.lists() == 11);  // of 12
  CHECK(store.heads() == 0);
  CHECK(session.size(8) == 1);
  CHECK(store.heads() == 1);

  for (int i = 0; i < 9; ++i) store.put("j/" + std::to_string(i), "x");
  for (int i = 0; i < 3000; ++i) store.put("j/9/" + std::to_string(i), "");
  store.clear_requests();
  const auto other = ps::s3(s3_names("j/", 9), s3_at(store.endpoint())).connect();
  for (unsigned i = 0; i < 9; ++i) CHECK(other.size(i) == 1);
  CHECK(store.all() == 1);
}

TEST_CASE("storage/s3: a page that fails is asked for again, and no page before it") {
  const deadline limit("pages that fail");
  fake_s3 store(5);
  for (int i = 0; i < 20; ++i) store.put("p/" + std::to_string(i), "x");
  std::size_t asked = 0;
  store.set_hook([&](const web_request&) {
    std::optional<std::string> instead;
    if (++asked % 3 != 0)
      instead = asked % 2 == 0 ? s3_refusal("503 Slow Down", "SlowDown", "Retry-After: 86400\r\n")
                               : s3_refusal("500 Internal Server Error", "InternalError");
    return instead;
  });
  ps::s3_options options = s3_at(store.endpoint());
  options.connection.retries = {
      .attempts = 4, .initial_backoff = 1ms, .max_backoff = 2ms, .max_retry_after = 2ms};
  CHECK(ps::s3::list("bucket/p/", options).size() == 20);
  CHECK(store.lists() == 12);
  store.clear_requests();
  const auto session = ps::s3(s3_names("p/", 20), options).connect();
  for (unsigned i = 0; i < 20; ++i) CHECK(session.size(i) == 1);
  CHECK(store.all() == 12);

  options.connection.retries.attempts = 2;
  asked = 0;
  ps::error e = s3_error_of([&] { (void)ps::s3::list("bucket/p/", options); });
  CHECK(says(e, "after 2 attempts"));
  CHECK_FALSE(e.recurs());
  CHECK(asked == 2);
  options.connection.retries.attempts = 100;
  options.connection.retries.budget = 20;
  store.set_hook([&](const web_request&) {
    return std::optional(s3_refusal("500 Internal Server Error", "InternalError"));
  });
  e = s3_error_of([&] { (void)ps::s3::list("bucket/p/", options); });
  CHECK(says(e, "after 5 attempts; so many reads failed that the budget for retries is spent"));
  store.set_hook(
      [&](const web_request&) { return std::optional(s3_refusal("403 Forbidden", "AccessDenied")); });
  store.clear_requests();
  CHECK(s3_error_of([&] { (void)ps::s3::list("bucket/p/", options); }).recurs());
  CHECK(store.all() == 1);
}

TEST_CASE("storage/s3: cancelling ends the wait for the next attempt at a page") {
  const deadline limit("a page that waits");
  fake_s3 store(5);
  for (int i = 0; i < 20; ++i) store.put("p/" + std::to_string(i), "x");
  std::atomic<int> asked{0};
  store.set_hook([&](const web_request&) {
    std::optional<std::string> instead;
    if (++asked > 1) instead = s3_refusal("503 Slow Down", "SlowDown", "Retry-After: 86400\r\n");
    return instead;
  });
  ps::s3_options options = s3_at(store.endpoint());
  options.connection.retries = {.max_retry_after = 23h, .max_time = 24h};
  const auto session = ps::s3(s3_names("p/", 20), options).connect();
  std::atomic<bool> over{false};
  std::thread asking([&] {
    CHECK(s3_error_of([&] { (void)session.size(0); }).code() == ps::errc::stopped);
    over = true;
  });
  while (asked.load() < 2) std::this_thread::sleep_for(1ms);
  while (!over.load()) {
    session.cancel();
    std::this_thread::sleep_for(1ms);
  }
  asking.join();
}

TEST_CASE("storage/s3: a list without ETags does not hide that an object was replaced") {
  const deadline limit("lists without ETags");
  fake_s3 store;
  for (int i = 0; i < 10; ++i) store.put("e/" + std::to_string(i), std::string(100, 'a'));
  store.list_without_tags();
  const auto session = ps::s3(s3_names("e/", 10), s3_at(store.endpoint())).connect();
  for (unsigned i = 0; i < 10; ++i) CHECK(session.version(i).stamp != 0);
  CHECK(store.lists() == 1);
  CHECK(store.heads() == 10);
  CHECK((s3_read(session, 3, 0, 10) == std::string(10, 'a')));
  store.put("e/3", std::string(100, 'b'));
  CHECK(says(s3_error_of([&] { (void)s3_read(session, 3, 0, 10); }), "replaced"));
}

TEST_CASE(
    "storage/s3: where nobody may list, each object is asked for; lists end, and say what they are not") {
  const deadline limit("lists");
  const std::string whole = web_content(5000);
  web_log log;
  std::string page;
  web_server server(answering([&](const web_request& request) {
    log.add(request.method() + " " + request.target());
    if (request.target().find("list-type=2") == std::string::npos) return web_object(request, whole);
    if (page.empty()) return s3_refusal("403 Forbidden", "AccessDenied");
    return web_answer("200 OK", "", page);
  }));
  ps::s3_options options = s3_at(server.at(""));
  const auto denied = ps::s3("bucket/t/a{0..9}", options).connect();
  for (unsigned i = 0; i < 10; ++i) CHECK(denied.size(i) == 5000);
  const std::vector<std::string> seen = log.all();
  CHECK(seen.size() == 11);
  CHECK(seen[0] == "GET /bucket?list-type=2&encoding-type=url&prefix=t%2Fa");
  CHECK(seen[1] == "HEAD /bucket/t/a0");

  // Eight are too few for a list.
  log.clear();
  page = "<ListBucketResult><IsTruncated>false</IsTruncated>";
  for (int i = 1; i < 10; ++i)
    page += "<Contents><Key>t/a" + std::to_string(i) + "</Key><Size>7</Size><ETag>\"one\"</ETag></Contents>";
  page += "</ListBucketResult>";
  const auto listed = ps::s3("bucket/t/a{0..9}", options).connect();
  for (unsigned i = 1; i < 10; ++i) CHECK(listed.size(i) == 7);
  CHECK(log.all().size() == 1);
  CHECK(says(s3_error_of([&] { (void)listed.size(0); }), "NoSuchKey"));
  CHECK(log.all().size() == 1);
  const auto few = ps::s3("bucket/t/a{0..7}", options).connect();
  CHECK(few.size(0) == 5000);

  page =
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>t/</Key><Size>0</Size></Contents>"
      "<Contents><Key>t/b</Key><Size>1</Size></Contents><Contents><Key>t/.penstock-index</Key><Size>1</Size>"
      "</Contents><Contents><Key>t/a</Key><Size>1</Size></Contents></ListBucketResult>";
  CHECK(ps::s3::list("bucket/t/", options) == std::vector<std::string>{"s3://bucket/t/a", "s3://bucket/t/b"});
  page = "<html/>";
  const ps::error e = s3_error_of([&] { (void)ps::s3::list("s3://bucket/t/", options); });
  CHECK(e.code() == ps::errc::io);
  CHECK(says(e, "s3://bucket/t/"));
  CHECK(s3_error_of([&] { (void)ps::s3::list("", options); }).code() == ps::errc::argument);
}
