// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/s3/list_result.hpp>
#include <penstock/storage/s3/requests/store.hpp>
#include <penstock/storage/web/object_reads.hpp>

#include <unordered_map>

namespace penstock::inline v0_1::detail::s3 {

/// Objects by their names, `s3://bucket/key`.
struct object_names {
  std::vector<std::string> names;
  std::string pattern;

  [[nodiscard]] object_name operator[](std::size_t at) const {
    const std::string_view name = std::string_view(names[at]).substr(5);
    const std::size_t slash = name.find('/');
    return {name.substr(0, slash), name.substr(slash + 1)};
  }
};

/// What all keys begin with, up to a whole character.
[[nodiscard]] inline std::string common_prefix(std::span<const std::string_view> keys) {
  std::string_view common = keys.empty() ? std::string_view() : keys.front();
  for (const std::string_view one : keys)
    common = std::string_view(common.begin(), std::ranges::mismatch(common, one).in1);
  // The bytes of a character in UTF-8 after its first are 10xxxxxx; its first says how many.
  std::size_t end = common.size(), after = 0;
  while (end != 0 && after < 4 && (static_cast<unsigned char>(common[end - 1]) & 0xC0u) == 0x80u)
    --end, ++after;
  const unsigned first = end == 0 ? 0u : static_cast<unsigned char>(common[end - 1]);
  const std::size_t wanted = first >= 0xF0u ? 3 : first >= 0xE0u ? 2 : first >= 0xC0u ? 1 : 0;
  return std::string(wanted > after ? common.substr(0, end - 1) : common);
}

/// The objects of a bucket whose keys begin with a prefix, page by page. A page that failed can be asked for
/// again.
class bucket_list {
 public:
  bucket_list(std::string_view bucket, std::string prefix)
      : bucket_(bucket), name_(text({"s3://", bucket, "/", prefix})), listing_(std::move(prefix)) {}

  [[nodiscard]] bool done() const noexcept { return listing_.done(); }
  [[nodiscard]] list_page next(store& with) {
    store_call call;
    call.bucket = bucket_;
    call.name = name_;
    call.doing = "list objects";
    call.query = listing_.query();
    call.max_body = std::size_t{8} << 20;
    with.perform(call);
    if (!call.succeeded()) throw call.failure_of_answer();
    if (call.reply.cut) throw call.failure({"a page of the list of objects has more than 8 MiB"}).recurring();
    return in_file(name_, [&] { return listing_.accept(call.reply.body); });
  }

 private:
  std::string bucket_, name_;
  object_listing listing_;
};

/// The names of the objects that begin so; see `s3::list`.
[[nodiscard]] inline std::vector<std::string> names_in(store& with, std::string_view text_of_prefix,
                                                       const retry_policy& policy) {
  std::string_view rest = text_of_prefix;
  if (rest.starts_with("s3://")) rest.remove_prefix(5);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  const std::string prefix(rest.substr(std::min(slash + 1, rest.size())));
  if (bucket.empty() || bucket.find_first_of("@:?") != std::string_view::npos)
    throw error(errc::argument, "what is listed is a bucket and perhaps a prefix: write s3://bucket/prefix");
  std::vector<std::string> names;
  retrier retries(policy);
  for (bucket_list list(bucket, prefix); !list.done();) {
    const list_page page = retries.insist([&] { return list.next(with); });
    for (const listed_object& one : page.objects) {
      if (one.size == 0 && one.key.ends_with('/')) continue;
      const std::string_view last = std::string_view(one.key).substr(one.key.rfind('/') + 1);
      if (last.find(".penstock-") == std::string_view::npos)
        names.push_back(text({"s3://", bucket, "/", one.key}));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Looks for many objects of a bucket at once, by listing what their keys have in common: until all are
/// found, the list ends, or so many others have gone by that it is better to ask for each.
class bucket_search {
 public:
  /// Keys are those of `names`, which outlives this.
  bucket_search(const object_names& names, std::string_view bucket, const std::vector<object_id>& ids)
      : maximum_(max_listed(ids.size())), pages_(bucket, common_prefix(keys_of(names, ids))) {
    for (const object_id id : ids) open_.emplace(names[id].key, id);
  }

  /// The most objects that are listed while that many are looked for.
  [[nodiscard]] static std::size_t max_listed(std::size_t wanted) noexcept { return 10'000 + 10 * wanted; }

  [[nodiscard]] bool done() const noexcept { return open_.empty() || pages_.done() || seen_ >= maximum_; }
  /// Asks for the next page. One that failed is asked for again.
  [[nodiscard]] list_page next(store& with) { return pages_.next(with); }
  /// Calls `found(id, entry)` for each wanted object of a page.
  template <class Found>
  void take(const list_page& page, Found&& found) {
    for (const listed_object& one : page.objects) {
      const auto [begin, end] = open_.equal_range(one.key);
      for (auto at = begin; at != end; ++at) found(at->second, one);
      open_.erase(begin, end);
    }
    seen_ += page.objects.size();
  }
  /// The objects that do not exist: a list that ended does not have them. Stores that put folders together
  /// list keys with empty ones under other names.
  [[nodiscard]] std::vector<object_id> missing() const {
    std::vector<object_id> all;
    if (!pages_.done()) return all;
    for (const auto& [key, id] : open_)
      if (!key.starts_with('/') && key.find("//") == std::string_view::npos) all.push_back(id);
    return all;
  }

 private:
  [[nodiscard]] static std::vector<std::string_view> keys_of(const object_names& names,
                                                             const std::vector<object_id>& ids) {
    std::vector<std::string_view> keys;
    keys.reserve(ids.size());
    for (const object_id id : ids) keys.push_back(names[id].key);
    return keys;
  }

  std::size_t maximum_, seen_ = 0;
  bucket_list pages_;
  std::unordered_multimap<std::string_view, object_id> open_;  // not found yet
};

/// What is known of an object.
struct object_facts {
  std::uint64_t size = 0, stamp = 0;           // the stamp is a hash of the tag
  std::string tag;                             // without W/; empty: not known yet, or there is none
  std::string if_match;                        // a strong tag
  std::unique_ptr<const object_facts> before;  // without the tag; requests may refer to it

  /// Whether only the stamp is known of a tag that the object must have.
  [[nodiscard]] bool expected() const noexcept { return tag.empty() && stamp != 0; }
};

/// What a session knows of its objects. What was noted first of an object holds for as long as this lives.
///
/// Threads: any number; no locks.
class known_objects : unmovable {
 public:
  explicit known_objects(std::size_t count) : facts_(count), count_(count) {}
  ~known_objects() {
    for (std::size_t i = 0; i < count_; ++i) delete facts_[i].load(std::memory_order_relaxed);
  }

  /// Null if nothing is known; what it points to lives as long as this.
  [[nodiscard]] const object_facts* operator[](object_id id) const noexcept {
    return facts_[id].load(std::memory_order_acquire);
  }
  /// Notes a signature whose tag an answer to a read will tell. False if it says nothing of the tag, or
  /// another one is known.
  [[nodiscard]] bool expect(object_id id, object_version what) {
    if (what.stamp == 0) return false;
    if ((*this)[id] == nullptr) {
      auto made = std::make_unique<object_facts>();
      made->size = what.size;
      made->stamp = what.stamp;
      const object_facts* none = nullptr;
      if (facts_[id].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
        (void)made.release();
        return true;
      }
    }
    return (*this)[id]->size == what.size && (*this)[id]->stamp == what.stamp;
  }
  /// Whether what a store says agrees with what is known, or is now what is known.
  [[nodiscard]] bool settle(object_id id, std::uint64_t size, std::string_view tag) {
    auto fresh = std::make_unique<object_facts>();
    fresh->size = size;
    fresh->tag = tag_of(tag);
    fresh->stamp = fresh->tag.empty() ? 0 : fingerprint().add(fresh->tag).value();
    if (!tag.starts_with("W/")) fresh->if_match = fresh->tag;
    const object_facts* there = (*this)[id];
    for (;;) {
      if (there != nullptr && there->size != size) return false;
      const bool tags = there != nullptr && there->stamp != 0 && fresh->stamp != 0;
      if (tags && there->stamp != fresh->stamp) return false;
      if (there != nullptr && !(tags && there->expected())) return true;
      fresh->before.reset(there);
      if (facts_[id].compare_exchange_weak(there, fresh.get(), std::memory_order_acq_rel)) {
        (void)fresh.release();
        return true;
      }
      (void)fresh->before.release();
    }
  }

 private:
  fixed_array<std::atomic<const object_facts*>> facts_;
  std::size_t count_;
};

/// Reads ranges of objects of a store. The first answer, a list, or who uses the session tells an object's
/// size and ETag, which hold for the session: a later answer that differs is an error.
class stored_objects : public web::object_reads<stored_objects, object_names, store, store_call> {
  friend object_reads;
  static constexpr bool ends_have_no_size = true;
  /// From so many names on, one list takes the place of a request for each.
  static constexpr std::size_t few = 8;
  /// What is asked by a list.
  static constexpr object_id everything = ~object_id{0};

 public:
  stored_objects(shared<const list> names, const s3_options& options, wall_clock clock = {})
      : object_reads(std::move(names), options.connection.connections),
        objects_(list_->names.size()),
        verifies_(options.verify_checksums),
        retries_(policy_of(options.connection)) {
    line_.emplace(options, clock);
  }
  ~stored_objects() { line_.reset(); }  // its threads end before what they use

  [[nodiscard]] object_version version(object_id id) {
    const object_facts& found = find(id);
    return {found.size, found.stamp};
  }
  /// See `expect_version`.
  [[nodiscard]] bool expect(object_id id, object_version what) {
    return id < list_->names.size() && objects_.expect(id, what);
  }
  [[nodiscard]] bool tagged(object_id id) const noexcept {
    const object_facts* const there = id < list_->names.size() ? known(id) : nullptr;
    return there != nullptr && there->stamp != 0;
  }

 private:
  [[nodiscard]] const object_facts* known(object_id id) const noexcept { return objects_[id]; }
  void address(store_call& what, object_id id) const {
    const object_name object = (*list_)[id];
    what.bucket = object.bucket;
    what.key = object.key;
    what.name = list_->names[id];
  }
  void add_headers(reading& one) const {
    const object_facts* const there = known(one.request.object);
    if (verifies_ && one.offset == 0 && (there == nullptr || there->size == one.request.into.size()))
      one.more.push_back({"x-amz-checksum-mode", "ENABLED"});
  }

  void begin(std::span<store_call* const> calls) noexcept { line_->begin(calls); }
  static void on_end(store_call& what, void* self, decltype(store_call::ended) ended) noexcept {
    what.owner = self;
    what.ended = ended;
  }
  void arrived(const reading& one, std::optional<std::uint64_t> total) {
    if (verifies_ && one.offset == 0 && total == one.into.size()) verify(one);
  }
  [[nodiscard]] static error failure_of(const store_call& what) { return what.failure_of_answer(); }
  static void verify(const reading& one) {
    const auto given = s3::checksum_of([&](std::string_view name) { return one.reply.header(name); });
    if (given && s3::checksum_of(given->name, one.into) != given->value)
      throw one.failure(
          {"the bytes that came do not have the ", given->name, " that the store keeps of them"});
  }

  // ---- Size and ETag

  /// Notes what a store tells of an object, or compares it with what is known.
  void pin(const store_call& what, object_id id, std::uint64_t size) {
    if (objects_.settle(id, size, what.reply.header("ETag"))) return;
    std::string line = "the object was replaced while it was read";
    if (known(id)->size != size)
      append(line, {": it had ", known(id)->size, " bytes, and has ", size});
    else if (known(id)->expected())
      line = "the object was replaced after the dataset was opened";
    throw what.with_facts(error(errc::io, line + "; start again with the new one")).recurring();
  }

  const object_facts& find(object_id id) {
    check(id);
    if (known(id) == nullptr && list_->names.size() > few && !listed_.load())
      flight_.ask(everything, [&] {
        if (!listed_.load()) list_all();
      });
    if (known(id) == nullptr && listed_.load() && missing_[id])
      throw error(errc::io, "NoSuchKey: there is no such object; the store's list does not have it")
          .recurring()
          .in_file(list_->names[id]);
    return object_reads::find(id);
  }
  void find_by_head(object_id id) {
    store_call head;
    head.method = web::verb::head;
    address(head, id);
    line_->perform(head);
    const web::answer& reply = head.reply;
    if (reply.status == 200 && reply.length) return pin(head, id, *reply.length);
    if (may_pass(reply.status)) throw head.failure_of_answer();
    find_by_range(id);  // whose answer says more
  }
  void find_by_range(object_id id) {
    std::byte first{};
    store_call get;
    address(get, id);
    get.offset = 0;
    get.into = {&first, 1};
    line_->perform(get);
    const auto total = web::total_length(get.reply);
    if (get.succeeded() && total) return pin(get, id, *total);
    const auto range = parse_content_range(get.reply.header("Content-Range"));
    if (get.reply.status == 416 && range && range->total == 0u) return pin(get, id, 0);
    throw get.failure_of_answer();
  }

  /// Asks for sizes and ETags of all objects at once. What is not found so is asked for at its use: where
  /// nobody may list, and entries without an ETag. Called again after a failure, it goes on where it was.
  void list_all() {
    if (searches_.empty()) {
      std::map<std::string_view, std::vector<object_id>> buckets;
      for (std::size_t i = 0; i < list_->names.size(); ++i)
        buckets[(*list_)[i].bucket].push_back(static_cast<object_id>(i));
      for (const auto& [bucket, ids] : buckets)
        if (ids.size() > few) searches_.emplace_back(*list_, bucket, ids);
      missing_.resize(list_->names.size());
    }
    const std::uint64_t cancels = flight_.cancels();
    bool advances = false;
    const auto wait = [&](std::chrono::nanoseconds time) { flight_.pause(time, cancels); };
    while (!searches_.empty()) {
      bucket_search& now = searches_.back();
      const auto next = [&] { return now.next(*line_); };
      try {
        while (!now.done()) {
          // Who asked tries again what fails at once. Between pages that come, that would be too few attempts
          // for a long list.
          const list_page page = advances ? retries_.insist(next, wait) : next();
          now.take(page, [&](object_id id, const listed_object& one) {
            // An object that is another one by now shows at its next read.
            if (!tag_of(one.etag).empty()) (void)objects_.settle(id, one.size, one.etag);
          });
          advances = true;
        }
        for (const object_id id : now.missing()) missing_[id] = true;
      } catch (const error& e) {
        if (e.code() != errc::io || !e.recurs()) throw;  // it may pass; or it was stopped
      }
      searches_.pop_back();
    }
    listed_.store(true);
  }

  known_objects objects_;
  bool verifies_;
  // Used by who asks about `everything`.
  std::vector<bucket_search> searches_;  // to be done
  std::vector<bool> missing_;            // constant once `listed_` is set
  retrier retries_;
  std::atomic<bool> listed_{false};
};

}  // namespace penstock::inline v0_1::detail::s3

namespace penstock::inline v0_1::detail {

using plain_s3 = web::plain_objects<s3::stored_objects, s3_options>;

}  // namespace penstock::inline v0_1::detail
