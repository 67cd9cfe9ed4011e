// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <string>

namespace penstock::inline v0_1 {

struct webdataset_options;
struct tfrecord_options;
class index_policy;
class own_index_policy;
class foreign_index_policy;

namespace detail {
struct foreign_index;
struct known_shards;
struct tf_layout;
class open_indexes;
enum class own_index_use : unsigned char { cache, keep, transient, require, none };

/// What the three kinds of policies have. None is another's base: so `?:` finds the type that both have.
class index_choice {
 public:
  friend constexpr bool operator==(index_choice, index_choice) = default;

  /// The options of `webdataset` and of `tfrecord` with this policy.
  operator webdataset_options() const;
  operator tfrecord_options() const;

 private:
  friend index_policy;
  friend own_index_policy;
  friend foreign_index_policy;
  friend known_shards;
  friend open_indexes;
  friend tf_layout;

  constexpr index_choice(own_index_use own, const foreign_index* foreign) noexcept
      : foreign_(foreign), own_(own) {}

  const foreign_index* foreign_;
  own_index_use own_;
};
}  // namespace detail

/// How a source obtains the indexes of its shards.
///
///   cache       the default: uses the file `<shard>.penstock-index` if it exists and belongs to the shard;
///               otherwise builds the index and keeps it in the user's cache folder, `$XDG_CACHE_HOME/penstock`
///               or `~/.cache/penstock`, under a hash of the shard's path. Without a cache folder that can be
///               written, the index stays in memory
///   keep        like `cache`, but a new index goes into `<shard>.penstock-index`, or stays in memory if the
///               folder is not writable, and the cache folder is not used
///   transient   uses `<shard>.penstock-index`, and writes no file
///   require     builds nothing: if `<shard>.penstock-index` is missing, damaged or made for another state of
///               its shard, that is an error that names both files
///
/// Indexes of other programs are policies in headers of their own, `dali_index` and `energon_index`:
///
///     auto samples = webdataset("train-{0000..0127}.tar", index_policy::cache.or_else(dali_index));
///
/// By itself, as in `webdataset(path, dali_index)`, the other program's index must exist and agree with its
/// shard: otherwise errc::missing or errc::format with the names of both files. The resulting index stays in
/// memory: no file is written.
/// `index_policy::cache.or_else(dali_index)` makes an index from DALI's only where there is none of
/// Penstock's, and reads the shard if there is none of DALI's either, or it does not agree with the shard;
/// what was made, also from DALI's, is kept as `cache` says, and is then one of Penstock's. `or_else` takes
/// one such policy, and only after one of the four above. After `require`, the other program's index must do,
/// and what was made of it for a file stays in memory.
///
/// Shards that are not local files, such as those of `http`: `keep` and `cache` both keep indexes in the
/// cache folder, or in `webdataset_options::index_folder`, under a hash of the shard's name without its
/// query, its size and its stamp (the ETag), so that an index never serves a shard that was replaced. An
/// index is looked for there; then beside the shard in the store, as `<shard>.penstock-index`; last it is
/// built from the headers. One that was made from a copy of the shard elsewhere is compared with six of the
/// shard's headers. `transient` does the same, and writes nothing. `require` does the same, and builds
/// nothing; what it took from the store is in the folder, too. A store that gives objects no stamp gets no
/// files in the folder. A file there that is damaged is made again; none is ever deleted, and you may delete
/// any at any time.
class index_policy : public detail::index_choice {
 public:
  static const own_index_policy cache, keep, transient, require;

  /// `cache`.
  constexpr index_policy() noexcept : index_choice(detail::own_index_use::cache, nullptr) {}
  constexpr index_policy(own_index_policy own) noexcept;
  constexpr index_policy(foreign_index_policy other) noexcept;

 private:
  friend index_choice;
  friend own_index_policy;
  explicit constexpr index_policy(index_choice of) noexcept : index_choice(of) {}
};

/// The policy of another program's indexes alone: `dali_index` or `energon_index`.
class foreign_index_policy : public detail::index_choice {
 public:
  explicit constexpr foreign_index_policy(const detail::foreign_index& file) noexcept
      : index_choice(detail::own_index_use::none, &file) {}
};

/// A policy of Penstock's indexes alone: `index_policy::cache`, `keep`, `transient` or `require`.
class own_index_policy : public detail::index_choice {
 public:
  /// Like this policy, but where there is no index of Penstock's one is made from that of `other`.
  [[nodiscard]] constexpr index_policy or_else(foreign_index_policy other) const noexcept {
    return index_policy(index_choice(own_, other.foreign_));
  }

 private:
  friend index_policy;
  explicit constexpr own_index_policy(detail::own_index_use own) noexcept : index_choice(own, nullptr) {}
};

constexpr index_policy::index_policy(own_index_policy own) noexcept : index_choice(own) {}
constexpr index_policy::index_policy(foreign_index_policy other) noexcept : index_choice(other) {}

inline constexpr own_index_policy index_policy::cache{detail::own_index_use::cache};
inline constexpr own_index_policy index_policy::keep{detail::own_index_use::keep};
inline constexpr own_index_policy index_policy::transient{detail::own_index_use::transient};
inline constexpr own_index_policy index_policy::require{detail::own_index_use::require};

/// What a source does with a shard that is cut off or damaged, which shows when its index is made.
///
///   refuse              making the plan is an error that names the shard and the offset
///   take_what_is_there  the samples before the damage are in the dataset, and those behind it are not: the sample
///                       in which it lies is left out. The source's `damaged_shards()` names such shards, its
///                       `describe()` counts them, and the ledger of `bad_samples` gets a line for each when a run
///                       opens. Their indexes stay in memory, so that each plan looks at them again. What is no
///                       shard at all is refused
enum class on_damaged_shard { refuse, take_what_is_there };

/// Options of `webdataset`.
struct webdataset_options {
  index_policy index = index_policy::cache;
  /// The number of threads that build missing indexes; 0: one per processor, or 32 where reads have latency.
  std::size_t threads = 0;
  /// Refuses shards without the two zero blocks that end an archive: a shard that was cut off between two
  /// members looks like one whose writer left the blocks out. `manifest().unended()` counts such shards.
  bool require_end = false;
  /// The maximum size of an extension header (for long names and other programs' metadata) that is read to
  /// build an index. The header must also fit in the shard, so memory use never exceeds the shard's size.
  std::uint64_t extension_limit = 1_MiB;
  /// The folder for indexes that are not kept beside their shards; empty: the user's cache folder. See
  /// `index_policy`.
  std::string index_folder = {};
  /// Where reads have latency, a missing index is built by reads of up to 4 MiB as long as headers are at
  /// most so many bytes apart, with what lies between them; headers that are further apart are read one by
  /// one.
  std::uint64_t scan_gap = 256_KiB;
  /// What to do with a shard that is cut off or damaged. Not for `dali_index` and `energon_index`, which say
  /// what a shard has, nor for `require`, since no index is kept of such a shard.
  penstock::on_damaged_shard on_damaged_shard = penstock::on_damaged_shard::refuse;
  /// Whether members called `._...`, which macOS puts beside the others, are no part of any sample. A shard's
  /// index is made again if it was made with another choice.
  bool skip_apple_double = true;
};

inline detail::index_choice::operator webdataset_options() const { return {.index = index_policy(*this)}; }

}  // namespace penstock::inline v0_1
