// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<pugixml.hpp>) || !__has_include(<openssl/evp.h>)
#error "penstock/storage/s3/multipart.hpp needs OpenSSL and pugixml: link penstock::s3"
#endif

#include <penstock/storage/s3/error_result.hpp>
#include <penstock/storage/s3/requests/hash.hpp>

#include <openssl/evp.h>

namespace penstock::inline v0_1::detail::s3 {

/// The upload's id, from the body of the answer to `POST ?uploads`.
[[nodiscard]] inline std::string read_upload_id(std::string_view body) {
  const xml_answer answer(body, "the answer to the start of an upload");
  return answer.required(answer.root("InitiateMultipartUploadResult"), "UploadId");
}

inline void append_xml(std::string& line, std::string_view chars) {
  constexpr std::string_view special = "&<>\"";
  constexpr std::array<std::string_view, 4> names{"&amp;", "&lt;", "&gt;", "&quot;"};
  for (const char& c : chars) {
    const std::size_t which = special.find(c);
    line += which == std::string_view::npos ? std::string_view(&c, 1) : names[which];
  }
}

/// The body of the request that completes an upload, from the ETags of its parts 1 to n, in order, as the
/// answers to them had them. Throws errc::argument for none, for more than 10,000, and for an empty one.
[[nodiscard]] inline std::string completion_of(std::span<const std::string> etags) {
  if (etags.empty() || etags.size() > 10'000)
    throw error(errc::argument, {"an upload has 1 to 10000 parts, not ", etags.size()});
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < etags.size(); ++i) {
    if (etags[i].empty() || !fits_into_header(etags[i]))
      throw error(errc::argument, {"part ", i + 1, " of the upload has no ETag"});
    append(body, {"<Part><PartNumber>", i + 1, "</PartNumber><ETag>"});
    append_xml(body, etags[i]);
    body += "</ETag></Part>";
  }
  return body + "</CompleteMultipartUpload>";
}

/// The ETag of an object of these parts, as S3 makes it: the MD5 of the parts' MD5s, and their number. Empty
/// if the parts' ETags are no MD5s.
[[nodiscard]] inline std::string tag_of_parts(std::span<const std::string> etags) {
  std::string sums;
  for (std::string_view tag : etags) {
    if (tag.size() > 1 && tag.starts_with('"') && tag.ends_with('"')) tag = tag.substr(1, tag.size() - 2);
    if (tag.size() != 32) return {};
    for (std::size_t i = 0; i < tag.size(); i += 2) {
      const int high = hex_value(tag[i]), low = hex_value(tag[i + 1]);
      if (high < 0 || low < 0) return {};
      sums += static_cast<char>(high * 16 + low);
    }
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (EVP_Digest(sums.data(), sums.size(), out.data(), &size, EVP_md5(), nullptr) != 1) return {};
  std::string tag = "\"";
  append_hex(tag, std::span(out).first(size));
  return tag + text({"-", etags.size(), "\""});
}

/// The object's ETag, from the answer to that request. A status of 200 may come before the store knows how it
/// ends: then the body is spaces and an error, which is thrown like one with a status of its own.
[[nodiscard]] inline std::string read_completion(const http_answer& answer) {
  constexpr std::string_view what = "complete an upload";
  if (answer.status != 200) throw error_of(read_refusal(answer), what);
  const xml_answer document(answer.body, "the answer to the end of an upload");
  if (std::string_view(document.root().name()) == "Error") {
    refusal found = read_refusal(answer);
    if (!remedy_of(found.code)) found.remedy = s3_remedy::retry;  // the status says nothing
    throw error_of(found, what);
  }
  return document.required(document.root("CompleteMultipartUploadResult"), "ETag");
}

}  // namespace penstock::inline v0_1::detail::s3
