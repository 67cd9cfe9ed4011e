// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3/list_result.hpp needs pugixml: link penstock::s3"
#endif

#include <penstock/storage/s3/requests/http_call.hpp>
#include <penstock/storage/s3/requests/xml.hpp>

#include <limits>
#include <utility>

namespace penstock::inline v0_1::detail::s3 {

/// An object as a list has it. The ETag is as the store spells it, usually in quotes; empty if it has none.
struct listed_object {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
};

/// One page of ListObjectsV2.
struct list_page {
  std::vector<listed_object> objects;
  std::string next_token;  // empty on the last page
};

/// Reads the body of a page. Throws errc::io, not recurring, for one that is malformed: truncated, hostile, a
/// size that is none, names that are not encoded as the page says, or more to come without a token for it.
[[nodiscard]] inline list_page read_list_page(std::string_view body) {
  const xml_answer answer(body, "the list of objects");
  const pugi::xml_node root = answer.root("ListBucketResult");
  const std::string encoding = characters_of(root.child("EncodingType"));
  if (!encoding.empty() && encoding != "url") answer.fail({"encodes its names in a way that is not 'url'"});
  const auto key_in = [&](const pugi::xml_node& object) {
    std::string raw = answer.required(object, "Key");
    if (encoding.empty()) return raw;
    auto decoded = form_decoded(raw);
    if (!decoded) answer.fail({"has a '%' without two digits in a <Key>"});
    return std::move(*decoded);
  };
  const auto size_in = [&](const pugi::xml_node& object) {
    const auto size = parse_digits(answer.required(object, "Size"));
    if (!size || *size > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      answer.fail({"has a <Size> that is no number of bytes"});
    return *size;
  };
  list_page page;
  for (const pugi::xml_node& one : root.children("Contents")) {
    page.objects.push_back({key_in(one), size_in(one), characters_of(one.child("ETag"))});
    if (!fits_into_header(page.objects.back().etag)) answer.fail({"has control characters in an <ETag>"});
  }
  const std::string more = characters_of(root.child("IsTruncated"));
  if (more == "true") {
    page.next_token = characters_of(root.child("NextContinuationToken"));
    if (page.next_token.empty())
      answer.fail(
          {"says that there is more, and has no <NextContinuationToken>: does this store have "
           "ListObjectsV2?"});
  } else if (!more.empty() && more != "false") {
    answer.fail({"has an <IsTruncated> that is neither true nor false"});
  }
  return page;
}

/// Goes through the pages of a list: until `done`, sends `query` and gives the answer's body to `accept`.
class object_listing {
 public:
  /// Objects whose keys begin with `prefix`.
  explicit object_listing(std::string prefix) : prefix_(std::move(prefix)) {}

  [[nodiscard]] bool done() const noexcept { return done_; }
  /// Of the request for the next page, which goes to the bucket.
  [[nodiscard]] std::vector<name_value> query() const {
    std::vector<name_value> items{{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix_}};
    if (!token_.empty()) items.push_back({"continuation-token", token_});
    return items;
  }
  /// The page with this body. Throws what `read_list_page` does, and errc::io for a page that is not the one
  /// asked for: names without the prefix; or for a list that would never end: the token of the page before,
  /// or more than 1000 pages in a row without a name.
  [[nodiscard]] list_page accept(std::string_view body) {
    list_page page = read_list_page(body);
    for (const listed_object& one : page.objects)
      if (!one.key.starts_with(prefix_))
        throw error(errc::io, {"the list of objects has a name that does not begin with '", prefix_,
                               "', which was asked for"});
    if (!page.next_token.empty() && page.next_token == token_)
      throw error(errc::io,
                  "the list of objects does not end: the store gives the same continuation token again");
    empty_pages_ = page.objects.empty() ? empty_pages_ + 1 : 0;
    if (empty_pages_ > max_empty_pages)
      throw error(errc::io, {"the list of objects does not end: ", empty_pages_,
                             " pages in a row have no name; ask for a longer prefix"})
          .recurring();
    token_ = page.next_token;
    done_ = token_.empty();
    return page;
  }

 private:
  static constexpr std::size_t max_empty_pages = 1000;  // of objects that were removed, perhaps

  std::string prefix_, token_;
  std::size_t empty_pages_ = 0;  // in a row
  bool done_ = false;
};

}  // namespace penstock::inline v0_1::detail::s3
