// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<yaml.h>)
#error "penstock/source/files/yaml_document.hpp needs libyaml: link penstock::yaml"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>

#include <yaml.h>

#include <memory>
#include <unordered_set>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// A node of a YAML document: a text, a list, or a map in document order. `offset` is its position in the
/// file.
struct yaml_node {
  enum class kind { text, list, map };
  kind what = kind::text;
  std::string text;
  std::vector<yaml_node> items;   // of a list, or the values of a map
  std::vector<std::string> keys;  // of a map
  std::uint64_t offset = 0;

  /// The value of a key; null if there is none.
  [[nodiscard]] const yaml_node* find(std::string_view key) const noexcept {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) return &items[i];
    }
    return nullptr;
  }
};

/// Reads one YAML document (JSON included) as plain data: no aliases, so nothing can grow beyond the file;
/// keys are texts and unique; at most 16 deep. Throws errc::format and errc::limit with the offset.
class yaml_document {
 public:
  [[nodiscard]] static yaml_node read(bytes_view bytes) {
    yaml_document reading(bytes);
    while (reading.next() != YAML_DOCUMENT_START_EVENT) {
      if (reading.is(YAML_STREAM_END_EVENT)) throw error(errc::format, "the YAML is empty").at_offset(0);
    }
    reading.next();
    yaml_node found = reading.node(0);
    reading.next();  // the end of the document
    if (reading.next() != YAML_STREAM_END_EVENT) reading.fail("a second document begins");
    return found;
  }

 private:
  static constexpr int deepest = 16;

  explicit yaml_document(bytes_view bytes) : parser_(new yaml_parser_t) {
    if (yaml_parser_initialize(parser_.get()) == 0) {
      delete parser_.release();
      throw std::bad_alloc();
    }
    const std::string_view text = bytes.empty() ? "" : text_of(bytes);  // never a null pointer
    yaml_parser_set_input_string(parser_.get(), reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }

  struct free_parser {
    void operator()(yaml_parser_t* parser) const noexcept {
      yaml_parser_delete(parser);
      delete parser;
    }
  };
  struct owned_event : unmovable {
    yaml_event_t value{};
    ~owned_event() { yaml_event_delete(&value); }
    void clear() noexcept {
      yaml_event_delete(&value);
      value = {};
    }
  };

  [[nodiscard]] bool is(yaml_event_type_t type) const noexcept { return event_.value.type == type; }
  [[noreturn]] void fail(const char* what) const {
    throw error(errc::format, {"the YAML cannot be read: ", what}).at_offset(event_.value.start_mark.index);
  }

  yaml_event_type_t next() {
    event_.clear();
    if (yaml_parser_parse(parser_.get(), &event_.value) != 0) return event_.value.type;
    if (parser_->error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const std::uint64_t at =
        parser_->error == YAML_READER_ERROR ? parser_->problem_offset : parser_->problem_mark.index;
    throw error(errc::format,
                {"this is not YAML: ", std::string_view(parser_->problem == nullptr ? "" : parser_->problem)})
        .at_offset(at);
  }
  [[nodiscard]] std::string scalar() const {
    const auto& text = event_.value.data.scalar;
    return {reinterpret_cast<const char*>(text.value), text.length};
  }

  /// The node that begins with the current event.
  [[nodiscard]] yaml_node node(int depth) {
    if (depth > deepest) {
      throw error(errc::limit, "the YAML is nested more than 16 deep")
          .at_offset(event_.value.start_mark.index);
    }
    yaml_node made;
    made.offset = event_.value.start_mark.index;
    if (is(YAML_SCALAR_EVENT)) {
      made.text = scalar();
    } else if (is(YAML_SEQUENCE_START_EVENT)) {
      made.what = yaml_node::kind::list;
      while (next() != YAML_SEQUENCE_END_EVENT) made.items.push_back(node(depth + 1));
    } else if (is(YAML_MAPPING_START_EVENT)) {
      made.what = yaml_node::kind::map;
      std::unordered_set<std::string> seen;
      while (next() != YAML_MAPPING_END_EVENT) {
        if (!is(YAML_SCALAR_EVENT)) fail("a key is not text");
        made.keys.push_back(scalar());
        if (!seen.insert(made.keys.back()).second) fail("a key appears twice");
        next();
        made.items.push_back(node(depth + 1));
      }
    } else {
      fail("it has an alias, which is for programs; write the value out");
    }
    return made;
  }

  std::unique_ptr<yaml_parser_t, free_parser> parser_;
  owned_event event_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
