// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/segment_crypto.hpp>
#include <penstock/storage/reads/part_reads.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace penstock::inline v0_1::detail {

/// How objects of a session are decrypted.
struct decrypting_rules {
  segment_layout layout;
  std::string associated;
  std::size_t max_in_flight;
  cipher_handle cipher;
};

/// An object whose header was read.
struct decrypted_object {
  object_cipher cipher;
  std::uint64_t file_size;
  std::uint64_t segments;
  std::uint64_t size;  // of the plaintext
};

/// The objects of a session that were opened; null for the others. They stay until the session ends.
class decrypted_objects {
 public:
  explicit decrypted_objects(std::size_t count) : count_(count), objects_(count) {}
  ~decrypted_objects() {
    for (std::size_t i = 0; i < count_; ++i) delete objects_[i].load();
  }

  [[nodiscard]] const decrypted_object* find(object_id id) const noexcept {
    return id < count_ ? objects_[id].load(std::memory_order_acquire) : nullptr;
  }
  /// Opens an object unless another thread has done so.
  template <class Open>
  [[nodiscard, gnu::noinline]] const decrypted_object& open(object_id id, Open&& how) {
    const std::scoped_lock held(opening_[id % opening_.size()]);
    if (const decrypted_object* const known = find(id)) return *known;
    auto made = std::make_unique<const decrypted_object>(how());
    objects_[id].store(made.get(), std::memory_order_release);
    return *made.release();
  }

 private:
  std::size_t count_;
  fixed_array<std::atomic<const decrypted_object*>> objects_;
  std::array<std::mutex, 64> opening_;
};

struct decryption_room {
  segment_context context;
  const object_cipher* keyed_for = nullptr;  // whose key the context has
  buffer sealed, plain;
};

/// The rooms of a session that no read uses now. Threads take and return them without a lock, and mostly find
/// their own again.
class decryption_rooms {
  struct giving_back {
    decryption_rooms* to;
    void operator()(decryption_room* room) const noexcept { to->give_back(room); }
  };

 public:
  using lease = std::unique_ptr<decryption_room, giving_back>;

  ~decryption_rooms() {
    for (auto& one : rooms_) delete one.load();
  }

  [[nodiscard]] lease take() {
    for (std::size_t i = 0, begin = first(); i < kept; ++i) {
      auto& place = rooms_[(begin + i) % kept];
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (decryption_room* const found = place.exchange(nullptr, std::memory_order_acquire))
        return lease(found, {this});
    }
    return lease(new decryption_room, {this});
  }

 private:
  static constexpr std::size_t kept = 64;

  [[nodiscard]] static std::size_t first() noexcept {
    return std::hash<std::thread::id>{}(std::this_thread::get_id());
  }
  void give_back(decryption_room* room) noexcept {
    for (std::size_t i = 0, begin = first(); i < kept; ++i) {
      decryption_room* empty = nullptr;
      if (rooms_[(begin + i) % kept].compare_exchange_strong(empty, room, std::memory_order_release,
                                                             std::memory_order_relaxed))
        return;
    }
    delete room;
  }

  std::array<std::atomic<decryption_room*>, kept> rooms_{};
};

template <storage Storage, class Keys>
class decrypting_session
    : public session_adaptor<decrypting_session<Storage, Keys>, typename Storage::session> {
  using inner = typename Storage::session;
  static constexpr bool in_background = background_session<inner>;
  /// The most ciphertext that is read at once: of what is near, as much as stays in the processor's cache.
  static constexpr std::uint64_t maximum =
      session_traits_of<inner>().latency ? std::uint64_t{8} << 20 : std::uint64_t{256} << 10;

  struct state {
    state(const Storage& given, const Keys& all_keys, const decrypting_rules& chosen)
        : where(given),
          keys(all_keys),
          rules(chosen),
          objects(where.names().size()),
          session(where.connect()) {
      if constexpr (in_background) threads.emplace(session_view(*this), where.names(), rules.max_in_flight);
    }
    ~state() {
      if (!threads) return;
      threads->cancel();
      penstock::end_reads(session);
    }

    /// Of the plaintext; reads none of it.
    [[nodiscard]] std::uint64_t size(object_id id) {
      if (const decrypted_object* const known = objects.find(id)) return known->size;
      return plain_size(id, session.size(id));
    }
    /// The plaintext's size, and the stamp of the object as it is stored.
    [[nodiscard]] object_version version(object_id id) {
      const object_version stored = session.version(id);
      return {plain_size(id, stored.size), stored.stamp};
    }

    /// What `threads` do.
    void read(object_id id, std::uint64_t offset, mutable_bytes into) {
      read<in_background>(id, offset, into);
    }
    template <bool Waiting>
    void read(object_id id, std::uint64_t offset, mutable_bytes into) {
      const decrypted_object* known = objects.find(id);
      if (known == nullptr)
        in_plaintext(offset, [&] { known = &objects.open(id, [&] { return opened<Waiting>(id); }); });
      if (offset > known->size || into.size() > known->size - offset) refuse(id, offset, into.size());
      if (into.empty() && known->size != 0) return;
      in_plaintext(offset, [&] { deliver<Waiting>(id, *known, offset, into); });
    }
    /// Errors of what `work` does in the stored object get the offset of the read.
    template <class Work>
    static void in_plaintext(std::uint64_t offset, Work&& work) {
      try {
        work();
      } catch (error& failed) {
        failed.within("the stored object", offset);
        throw;
      }
    }

    template <bool Waiting>
    void deliver(object_id id, const decrypted_object& object, std::uint64_t offset, mutable_bytes into) {
      const decryption_rooms::lease room = rooms.take();
      if (room->keyed_for != &object.cipher) {
        room->keyed_for = nullptr;
        room->context.decrypt_with(rules.cipher, object.cipher.key);
        room->keyed_for = &object.cipher;
      }
      const segment_layout& layout = rules.layout;
      std::uint64_t segment = layout.segment_at(offset);
      std::uint64_t skipped = offset - layout.plain_begin(segment);
      do {  // once for an empty object, whose tag is checked too
        const std::uint64_t end = into.empty() ? 1 : layout.segment_at(offset + into.size() - 1) + 1;
        const std::uint64_t together = std::max<std::uint64_t>(maximum / layout.segment_size(), 1);
        const std::uint64_t stop = std::min(end, segment + together), begin = layout.file_begin(segment);
        bytes_view sealed =
            stored<Waiting>(id, begin, layout.file_end(stop - 1, object.file_size) - begin, *room);
        for (; segment < stop; ++segment) {
          const std::uint64_t at = layout.file_begin(segment);
          const bytes_view one = sealed.first(to_size(layout.file_end(segment, object.file_size) - at));
          sealed = sealed.subspan(one.size());
          const std::size_t taken = open(id, object, segment, one, to_size(skipped), into, *room);
          into = into.subspan(taken);
          offset += taken;
          skipped = 0;
        }
      } while (!into.empty());
    }

    /// Decrypts a segment, and delivers what is wanted of it; returns how much that is.
    std::size_t open(object_id id, const decrypted_object& object, std::uint64_t segment, bytes_view sealed,
                     std::size_t skipped, mutable_bytes into, decryption_room& room) {
      const std::size_t size = sealed.size() - segment_layout::tag_size;
      const std::size_t taken = std::min(size - skipped, into.size());
      std::byte* to = into.data();
      if (taken != size || size == 0) {
        room.plain.resize_for_overwrite(std::max<std::size_t>(size, 1));
        to = room.plain.data();
      }
      const auto nonce = object.cipher.nonce(segment, segment + 1 == object.segments);
      if (!room.context.open(nonce, sealed, to)) [[unlikely]] {
        if (size != 0) std::memset(to, 0, size);  // nobody gets what was not verified
        damaged(id, object, segment);
      }
      if (taken != size && taken != 0) std::memcpy(into.data(), to + skipped, taken);
      return taken;
    }

    /// Bytes of the object as it is stored: in place if the session shows them.
    template <bool Waiting>
    [[nodiscard]] bytes_view stored(object_id id, std::uint64_t offset, std::uint64_t size,
                                    decryption_room& room) {
      if constexpr (mapped_session<inner>)
        if (is_mapped(session, id)) return session.view(id, offset, size);
      room.sealed.resize_for_overwrite(to_size(size));
      load<Waiting>(id, offset, room.sealed.span());
      return room.sealed.view();
    }
    /// A thread of `threads` waits for a read in the background, so that `cancel` ends it.
    template <bool Waiting>
    void load(object_id id, std::uint64_t offset, mutable_bytes into) {
      if constexpr (Waiting) {
        awaited_end one;
        const read_request request{id, offset, into, 0};
        {
          const std::scoped_lock held(starting);
          session.read_many(std::span<const read_request>(&request, 1), one.listener());
        }
        one.get();
      } else {
        session.read(id, offset, into);
      }
    }

    template <bool Waiting>
    [[nodiscard]] decrypted_object opened(object_id id) {
      const std::uint64_t file_size = session.size(id);
      const std::uint64_t size = plain_size(id, file_size);
      std::array<std::byte, segment_layout::header_size> header;
      load<Waiting>(id, 0, header);
      if (header[0] != std::byte{segment_layout::header_size})
        throw error(errc::format, {"the object does not begin as an encrypted one does: with the byte ",
                                   segment_layout::header_size, ", not ", static_cast<unsigned>(header[0])})
            .in_file(name(id))
            .at_offset(0);
      return {object_cipher(header, key_of(keys, name(id)), rules.associated), file_size,
              *rules.layout.segments(file_size), size};
    }
    [[nodiscard]] std::uint64_t plain_size(object_id id, std::uint64_t file_size) const {
      const std::optional<std::uint64_t> segments = rules.layout.segments(file_size);
      if (!segments)
        throw error(errc::format, {"no encrypted object has ", file_size,
                                   " bytes with these segments: it was cut short, is not encrypted, or has "
                                   "another segment_size"})
            .in_file(name(id));
      return segment_layout::plain_size(file_size, *segments);
    }
    [[nodiscard]] std::string_view name(object_id id) const {
      const std::span<const std::string> names = where.names();
      return id < names.size() ? std::string_view(names[id]) : std::string_view();
    }

    [[noreturn, gnu::cold]] void refuse(object_id id, std::uint64_t offset, std::uint64_t size) {
      throw error(errc::format,
                  {"the decrypted object ends at ", this->size(id), ", but ", size, " bytes were requested"})
          .in_file(name(id))
          .at_offset(offset);
    }
    [[noreturn, gnu::cold]] void damaged(object_id id, const decrypted_object& object,
                                         std::uint64_t segment) {
      penstock::confirm(std::as_const(session), id);
      throw error(
          errc::checksum,
          {"segment ", segment, " of ", object.segments,
           " was not encrypted with this key, associated data and segment_size, or was changed or cut off "
           "since; check the key, then fetch or write the object again"})
          .in_file(name(id))
          .at_offset(rules.layout.file_begin(segment));
    }

    Storage where;
    Keys keys;
    decrypting_rules rules;
    decrypted_objects objects;
    decryption_rooms rooms;
    inner session;
    std::mutex starting;                    // one thread at a time calls read_many
    std::optional<threaded_reads> threads;  // end first
  };

 public:
  /// Nobody gets what is stored.
  static constexpr session_traits traits = {.latency = session_traits_of<inner>().latency};
  void mapped(object_id) const = delete;
  void view(object_id, std::uint64_t, std::uint64_t) const = delete;
  void prefetch(object_id, std::uint64_t, std::uint64_t) const = delete;
  void abandon(std::uint64_t) const = delete;

  decrypting_session(const Storage& where, const Keys& keys, const decrypting_rules& rules)
      : state_(std::make_unique<state>(where, keys, rules)) {}

  [[nodiscard]] std::uint64_t size(object_id id) const { return state_->size(id); }
  [[nodiscard]] object_version version(object_id id) const { return state_->version(id); }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    state_->template read<false>(id, offset, into);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires in_background
  {
    state_->threads->read_many(requests, listener);
  }
  void cancel() const noexcept {
    if constexpr (in_background) state_->threads->cancel();
    cancel_reads(state_->session);
  }
  void end_reads() const noexcept {
    if constexpr (in_background) state_->threads->cancel();
    penstock::end_reads(state_->session);
  }
  void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const {
    const auto [begin, end] = in_file(id, offset, size);
    if (begin < end) penstock::will_need(state_->session, id, begin, end - begin);
  }
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const {
    const auto [begin, end] = in_file(id, offset, size);
    if (begin < end) state_->session.plan_read(id, begin, end - begin, row);
  }

  /// True if the session inside can tell by its answers.
  [[nodiscard]] bool expect(object_id id, object_version what) const {
    return expect_version(state_->session, id, {state_->rules.layout.file_size(what.size), what.stamp});
  }

  /// That of the session inside, which counts what is stored; of its reads in the background as many as are
  /// allowed are in flight.
  [[nodiscard]] session_report report() const {
    session_report all = report_of(state_->session);
    if constexpr (in_background) all.limit(state_->rules.max_in_flight);
    if (all.oldest) all.oldest->offset = state_->rules.layout.plain_at(all.oldest->offset);
    all.names = state_->where.names();
    return all;
  }
  [[nodiscard]] session_report limits() const {
    session_report all = limits_of(state_->session);
    if constexpr (in_background) all.limit(state_->rules.max_in_flight);
    return all;
  }
  [[nodiscard]] inner& inside() const noexcept { return state_->session; }

 private:
  struct span_in_file {
    std::uint64_t begin, end;
  };
  /// Where the segments of a range are.
  [[nodiscard]] span_in_file in_file(object_id id, std::uint64_t offset, std::uint64_t size) const {
    if (size == 0) return {0, 0};
    const segment_layout& layout = state_->rules.layout;
    const std::uint64_t begin = layout.file_begin(layout.segment_at(offset));
    if (const decrypted_object* const known = state_->objects.find(id))
      return {begin, layout.file_end(layout.segment_at(offset + size - 1), known->file_size)};
    return {begin, layout.file_at(offset + size - 1) + 1};
  }

  std::unique_ptr<state> state_;
};

}  // namespace penstock::inline v0_1::detail
