// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3/requests/xml.hpp needs pugixml: link penstock::s3"
#endif

#include <penstock/core/error.hpp>

#include <pugixml.hpp>

#include <algorithm>
#include <new>
#include <optional>

namespace penstock::inline v0_1::detail::s3 {

/// What makes a body no XML of a store: its size, a document type, or its form.
struct xml_fault {
  std::string_view why;
  std::size_t offset = 0;
};

/// Parses the body of an answer. pugixml knows no entities of a document's own and does not recurse; here a
/// body is refused before it is parsed if it has such entities, or more than `max_tags`, or attributes, so
/// that its memory stays within a small multiple of `max_bytes`.
[[nodiscard]] inline std::optional<xml_fault> load_xml(pugi::xml_document& document, std::string_view body) {
  constexpr std::size_t max_bytes = std::size_t{8} << 20;
  constexpr std::ptrdiff_t max_tags = 200'000;  // a full page of a list has about 30,000
  // Two for an attribute; a full page whose keys were nothing but quotation marks would have a million.
  constexpr std::ptrdiff_t max_quotes = 1'200'000;
  if (body.size() > max_bytes) return xml_fault{"it is larger than 8 MiB", max_bytes};
  if (const std::size_t zero = body.find('\0'); zero != std::string_view::npos)
    return xml_fault{"it has a zero byte", zero};
  if (const std::size_t type = body.find("<!DOCTYPE"); type != std::string_view::npos)
    return xml_fault{"it declares a document type, which no store does", type};
  if (std::count(body.begin(), body.end(), '<') > max_tags)
    return xml_fault{"it has more than 200,000 tags", 0};
  if (std::count(body.begin(), body.end(), '"') + std::count(body.begin(), body.end(), '\'') > max_quotes)
    return xml_fault{"it has more than 600,000 attributes", 0};
  constexpr unsigned how = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_ws_pcdata_single;
  const pugi::xml_parse_result found =
      document.load_buffer(body.data(), body.size(), how, pugi::encoding_utf8);
  if (found.status == pugi::status_out_of_memory) throw std::bad_alloc();
  if (!found)
    return xml_fault{found.description(),
                     static_cast<std::size_t>(std::max<std::ptrdiff_t>(found.offset, 0))};
  return std::nullopt;
}

/// The characters directly in an element.
[[nodiscard]] inline std::string characters_of(const pugi::xml_node& element) {
  std::string line;
  for (const pugi::xml_node& inner : element.children())
    if (inner.type() == pugi::node_pcdata || inner.type() == pugi::node_cdata) line += inner.value();
  return line;
}

/// A document that must be well-formed: an answer with status 200. What is wrong with it may be different
/// when it is asked for again, so that its errors are errc::io and do not recur.
class xml_answer {
 public:
  /// `what` names the answer in errors: "the list of objects".
  xml_answer(std::string_view body, std::string_view what) : what_(what) {
    if (const auto fault = load_xml(document_, body))
      throw error(errc::io, {what_, " is not the XML of a store: ", fault->why, ", at byte ", fault->offset});
  }
  [[nodiscard]] pugi::xml_node root() const { return document_.document_element(); }
  /// The root, which must have that name.
  [[nodiscard]] pugi::xml_node root(const char* name) const {
    const pugi::xml_node found = root();
    if (std::string_view(found.name()) != name) fail({"has another root than <", name, ">"});
    return found;
  }
  /// What is in the element `name`; it must be there, and have characters.
  [[nodiscard]] std::string required(const pugi::xml_node& within, const char* name) const {
    std::string found = characters_of(within.child(name));
    if (found.empty())
      fail({"has no <", name, "> in its <", std::string_view(within.name()).substr(0, 40), ">"});
    return found;
  }
  [[noreturn, gnu::cold]] void fail(std::initializer_list<piece> why) const {
    std::string line(what_);
    line += ' ';
    append(line, why);
    throw error(errc::io, line);
  }

 private:
  std::string_view what_;
  pugi::xml_document document_;
};

}  // namespace penstock::inline v0_1::detail::s3
