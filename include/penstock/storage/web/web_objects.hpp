// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/storage/web/object_reads.hpp>
#include <penstock/storage/web/web_client.hpp>

namespace penstock::inline v0_1::detail::web {

/// Objects of web servers, by their numbers.
struct object_urls {
  std::vector<std::string> names;  // what errors call them: without queries
  std::vector<url> urls;
  std::string pattern;
};

/// Reads ranges of objects through a client. What the first answer tells of an object, its size and its tag,
/// holds for the session: a later answer that differs is an error.
class objects : public object_reads<objects, object_urls, client, call> {
  friend object_reads;
  static constexpr bool ends_have_no_size = false;
  struct facts {
    std::uint64_t size = 0;
    std::string tag, modified, if_match;
    [[nodiscard]] std::uint64_t stamp() const {
      return tag.empty() && modified.empty() ? 0 : fingerprint().add(tag.empty() ? modified : tag).value();
    }
  };

 public:
  objects(shared<const list> all, const http_options& options)
      : object_reads(std::move(all), options.connections),
        answers_(list_->names.size()),
        headers_(options.headers) {
    line_.emplace(options);
    for (const url& one : list_->urls) line_->check_proxy(one);
  }
  ~objects() {
    line_.reset();  // its thread ends before what it uses
    for (std::size_t i = 0; i < list_->names.size(); ++i) delete answers_[i].load(std::memory_order_relaxed);
  }

  /// The size, and a hash of the ETag, or of Last-Modified without one.
  [[nodiscard]] object_version version(object_id id) {
    const facts& found = find(id);
    return {found.size, found.stamp()};
  }
  /// Whether equal versions mean equal bytes: what the object's ETag says, if it has one that a server does
  /// not make of the time and the size.
  [[nodiscard]] bool tagged(object_id id) const {
    const facts* const there = id < list_->urls.size() ? known(id) : nullptr;
    return there != nullptr && !there->tag.empty() && !is_of_time(there->tag, there->size);
  }

 private:
  [[nodiscard]] const facts* known(object_id id) const noexcept {
    return answers_[id].load(std::memory_order_acquire);
  }
  void address(call& what, object_id id) const {
    what.where = list_->urls[id];
    what.name = list_->names[id];
    what.headers = headers_;
    what.headers_stay = true;
  }

  void begin(std::span<call* const> calls) noexcept {
    const std::exception_ptr failed = thrown_by([&] { line_->submit(calls); });
    if (failed)
      for (call* const one : calls) one->done(one->self, *one, failed);
  }
  static void on_end(call& what, void* self, decltype(call::done) ended) noexcept {
    what.self = self;
    what.done = ended;
  }
  [[nodiscard]] static http_error failure_of(const call& what) {
    return what.with_facts(answer_error(what.reply.status, what.reply.retry_after()));
  }
  /// Notes what an answer tells of an object, or compares it with what is known.
  void pin(const call& what, object_id id, std::uint64_t size) {
    auto fresh = std::make_unique<facts>();
    fresh->size = size;
    const std::string_view tag = what.reply.header("ETag");
    const bool weak = tag.starts_with("W/");
    fresh->tag = weak ? tag.substr(2) : tag;
    if (fresh->tag == "\"\"") fresh->tag.clear();  // says nothing
    fresh->modified = what.reply.header("Last-Modified");
    if (tag.size() > 2 && tag.starts_with('"') && tag.ends_with('"')) fresh->if_match = fresh->tag;
    const facts* there = nullptr;
    if (answers_[id].compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel)) {
      (void)fresh.release();
      return;
    }
    const bool tags = !there->tag.empty() && !fresh->tag.empty();
    const bool dates = (!tags || weak) && !there->modified.empty() && !fresh->modified.empty();
    if (there->size == size && (!tags || there->tag == fresh->tag) &&
        (!dates || there->modified == fresh->modified))
      return;
    std::string line = "the object was replaced while it was read";
    if (there->size != size) append(line, {": it had ", there->size, " bytes, and has ", size});
    throw what.with_facts(error(errc::io, line + "; start again with the new one")).recurring();
  }

  void find_by_head(object_id id) {
    call head;
    head.method = verb::head;
    address(head, id);
    line_->perform(head);
    const answer& reply = head.reply;
    if (reply.status == 200 && reply.length && !is_encoded(reply)) return pin(head, id, *reply.length);
    // Signed URLs are for one method, and some servers know no HEAD.
    if (reply.status == 200 || reply.status == 400 || reply.status == 403 || reply.status == 405 ||
        reply.status == 501)
      return find_by_range(id);
    throw failure_of(head);
  }
  void find_by_range(object_id id) {
    std::byte first{};
    call get;
    address(get, id);
    get.offset = 0;
    get.into = {&first, 1};
    const answer& reply = get.reply;
    try {
      line_->perform(get);
    } catch (const error&) {
      // The server ignores ranges, but it has said how long the object is.
      if (reply.status == 200 && reply.length && !is_encoded(reply))
        return pin(get, id, *total_length(reply));
      throw;
    }
    const auto range = parse_content_range(reply.header("Content-Range"));
    if (reply.status == 416 && range && range->total == 0u) return pin(get, id, 0);
    if (reply.status != 200 && reply.status != 206) throw failure_of(get);
    const auto total = total_length(reply);
    if (!total)
      throw get.with_facts(error(errc::io, "the server does not tell how long the object is")).recurring();
    return pin(get, id, *total);
  }
  [[nodiscard]] static bool is_encoded(const answer& reply) {
    const std::string_view encoding = reply.header("Content-Encoding");
    return !encoding.empty() && encoding != "identity";
  }

  fixed_array<std::atomic<const facts*>> answers_;
  std::vector<call::header> headers_;
};

}  // namespace penstock::inline v0_1::detail::web

namespace penstock::inline v0_1::detail {

using plain_http = web::plain_objects<web::objects, http_options>;

}  // namespace penstock::inline v0_1::detail
