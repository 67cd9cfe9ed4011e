// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/to_arrow.hpp>

#include <penstock/core/error.hpp>

#include <cerrno>
#include <exception>
#include <new>
#include <optional>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE std::shared_ptr<std::vector<std::uint8_t>> arrow_bits(std::size_t count) {
  return std::make_shared<std::vector<std::uint8_t>>((count + 7) / 8);
}

PENSTOCK_INLINE void set_arrow_bit(std::vector<std::uint8_t>& bits, std::size_t i) noexcept {
  bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
}

PENSTOCK_INLINE void exported_arrow::add(std::string_view child_name, exported_arrow child) {
  child.name = child_name;
  children.push_back(std::move(child));
}

PENSTOCK_INLINE void exported_arrow::keep_bits(const std::byte* bools, std::size_t count) {
  const auto bits = arrow_bits(count);
  for (std::size_t i = 0; i < count; ++i)
    if (bools[i] != std::byte{0}) set_arrow_bit(*bits, i);
  buffers = {nullptr, bits->data()};
  keep = bits;
}

PENSTOCK_INLINE void exported_arrow::nest(const extents& shape) {
  for (std::size_t i = shape.rank(); i-- > 1;) {
    exported_arrow list;
    list.format = text({"+w:", shape[i]});
    list.length = 1;
    for (std::size_t k = 0; k < i; ++k) list.length *= shape[k];
    list.buffers = {nullptr};
    list.add("item", std::move(*this));
    *this = std::move(list);
  }
}

PENSTOCK_INLINE void exported_arrow::mark_valid(std::span<const std::uint8_t> valid) {
  std::uint64_t missing = 0;
  for (const std::uint8_t one : valid) missing += one == 0;
  if (missing == 0) return;
  const auto bits = arrow_bits(valid.size());
  for (std::size_t i = 0; i < valid.size(); ++i)
    if (valid[i] != 0) set_arrow_bit(*bits, i);
  for (exported_arrow& child : children) {
    child.nulls = missing;
    child.buffers.front() = bits->data();
    child.keep_validity = bits;
  }
}

/// What an exported struct of Arrow's refers to: what is `kept` for it, and its children.
template <class Exported, class Kept>
struct exported_state {
  Kept kept;
  std::vector<Exported> children;
  std::vector<Exported*> pointers;
};

/// Fills `into` but for its own fields, which `fill(state)` does, and for its children, of which `child(i,
/// place)`
/// exports one. Its `release` frees all of it.
template <class Exported, class Kept, class Fill, class Child>
void export_with_children(Exported* into, Kept kept, std::size_t count, const Fill& fill,
                          const Child& child) {
  using state_type = exported_state<Exported, Kept>;
  auto made = std::make_unique<state_type>();
  made->kept = std::move(kept);
  made->children.resize(count);
  for (Exported& one : made->children) made->pointers.push_back(&one);
  *into = {};
  into->release = [](Exported* self) {
    const std::unique_ptr<state_type> gone(static_cast<state_type*>(self->private_data));
    for (Exported& one : gone->children)
      if (one.release != nullptr) one.release(&one);
    self->release = nullptr;
  };
  state_type& state = *made.release();
  into->private_data = &state;
  into->n_children = static_cast<std::int64_t>(count);
  into->children = state.pointers.data();
  fill(state.kept);
  try {
    for (std::size_t i = 0; i < count; ++i) child(i, &state.children[i]);
  } catch (...) {
    into->release(into);
    throw;
  }
}

PENSTOCK_INLINE void export_schema(const exported_arrow& from, arrow_abi::schema* into) {
  export_with_children(
      into, std::pair(from.name, from.format), from.children.size(),
      [&](const auto& kept) {
        into->name = kept.first.c_str();
        into->format = kept.second.c_str();
        into->flags = arrow_abi::nullable;
      },
      [&](std::size_t i, arrow_abi::schema* child) { export_schema(from.children[i], child); });
}

PENSTOCK_INLINE void export_array(exported_arrow from, arrow_abi::array* into) {
  auto children = std::move(from.children);
  export_with_children(
      into, std::move(from), children.size(),
      [&](exported_arrow& kept) {
        into->length = static_cast<std::int64_t>(kept.length);
        into->null_count = static_cast<std::int64_t>(kept.nulls);
        into->n_buffers = static_cast<std::int64_t>(kept.buffers.size());
        into->buffers = kept.buffers.data();
      },
      [&](std::size_t i, arrow_abi::array* child) { export_array(std::move(children[i]), child); });
}

// Whether batches of both are rows of the same columns.
PENSTOCK_INLINE bool same_arrow_columns(const exported_arrow& a, const exported_arrow& b) noexcept {
  if (a.name != b.name || a.format != b.format || a.children.size() != b.children.size()) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i)
    if (!same_arrow_columns(a.children[i], b.children[i])) return false;
  return true;
}

struct exported_stream_state {
  std::shared_ptr<void> run;
  bool (*next_batch)(void* run, exported_arrow& into) = nullptr;
  exported_arrow columns;  // of the first batch, without its memory
  std::optional<exported_arrow> first;
  bool begun = false, ended = false;
  int code = 0;  // of the failure
  std::string failure;

  static exported_stream_state& of(arrow_abi::array_stream* stream) noexcept {
    return *static_cast<exported_stream_state*>(stream->private_data);
  }
  static void let_go(exported_arrow& column) {
    column.keep = column.keep_validity = nullptr;
    column.buffers.clear();
    for (exported_arrow& child : column.children) let_go(child);
  }
  void begin() {
    if (begun) return;
    begun = true;
    exported_arrow found;
    found.format = "+s";
    found.buffers = {nullptr};
    ended = !next_batch(run.get(), found);
    columns = found;
    let_go(columns);
    if (!ended) first = std::move(found);
  }
  // Calls `f`, and gives what it throws as a number of errno.
  int guarded(auto&& f) noexcept {
    if (code != 0) return code;  // a stream that failed does so again
    try {
      f();
      return 0;
    } catch (const error& e) {
      return fail(e.what(), e.code() == errc::argument ? EINVAL : EIO);
    } catch (const std::exception& e) {
      return fail(e.what(), EIO);
    } catch (...) {
      return fail("an exception of unknown type", EIO);
    }
  }
  int fail(const char* what, int number) noexcept {
    try {
      failure = what;
    } catch (const std::bad_alloc&) {
      failure.clear();
    }
    return code = number;
  }
};

PENSTOCK_INLINE void export_stream(std::shared_ptr<void> run, bool (*next)(void* run, exported_arrow& into),
                                   arrow_abi::array_stream* into) {
  using state_type = exported_stream_state;
  auto state = std::make_unique<state_type>();
  state->run = std::move(run);
  state->next_batch = next;
  *into = {};
  into->get_schema = [](arrow_abi::array_stream* self, arrow_abi::schema* out) {
    state_type& s = state_type::of(self);
    return s.guarded([&] {
      s.begin();
      export_schema(s.columns, out);
    });
  };
  into->get_next = [](arrow_abi::array_stream* self, arrow_abi::array* out) {
    state_type& s = state_type::of(self);
    return s.guarded([&] {
      *out = {};
      s.begin();
      exported_arrow found;
      if (s.first) {
        found = std::move(*s.first);
        s.first.reset();
      } else if (s.ended || !s.next_batch(s.run.get(), found)) {
        s.ended = true;
        return;
      }
      if (!same_arrow_columns(found, s.columns))
        throw error(errc::argument,
                    "the arrays of this batch have other lengths than those of the first one: "
                    "resize them, or make them ragged, before batch");
      export_array(std::move(found), out);
    });
  };
  into->get_last_error = [](arrow_abi::array_stream* self) {
    const std::string& failure = state_type::of(self).failure;
    return failure.empty() ? nullptr : failure.c_str();
  };
  into->release = [](arrow_abi::array_stream* self) {
    delete &state_type::of(self);
    self->release = nullptr;
  };
  into->private_data = state.release();
}

}  // namespace detail

}  // namespace penstock::inline v0_1
