// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What stores answer in XML: [how] [body]; `how` is the kind of answer, or its status divided by 4.

#include <penstock/storage/s3/error_result.hpp>
#include <penstock/storage/s3/list_result.hpp>
#include <penstock/storage/s3/multipart.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace s3 = penstock::detail::s3;

namespace {

bool is_plain(std::string_view code) {
  for (const char c : code)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f) return false;
  return true;
}

void one_list(std::string_view body) {
  s3::object_listing all("");
  const s3::list_page page = all.accept(body);
  for (const s3::listed_object& one : page.objects) {
    must(!one.key.empty(), "an object has a key");
    must(one.size <= INT64_MAX, "a size fits");
    must(s3::fits_into_header(one.etag), "an ETag can be sent back");
    touch(one.key);
  }
  must(all.done() == page.next_token.empty(), "a list goes on where there is a token");
  // What was read once is read again, from names that are encoded here.
  std::string again = "<ListBucketResult><EncodingType>url</EncodingType>";
  for (const s3::listed_object& one : page.objects) {
    penstock::detail::append(again, {"<Contents><Key>", s3::percent_encoded(one.key), "</Key><Size>",
                                     one.size, "</Size></Contents>"});
  }
  const s3::list_page second = s3::read_list_page(again + "</ListBucketResult>");
  must(second.objects.size() == page.objects.size(), "as many objects the second time");
  for (std::size_t i = 0; i < second.objects.size(); ++i)
    must(second.objects[i].key == page.objects[i].key && second.objects[i].size == page.objects[i].size,
         "the same objects the second time");
}

void one_refusal(int status, std::string body) {
  const s3::refusal found = s3::read_refusal({status, {}, std::move(body)}, "us-east-1");
  must(is_plain(found.code) && is_plain(found.request) && is_plain(found.region), "plain words only");
  must(found.remedy != penstock::s3_remedy::other_region || !found.region.empty(),
       "another region has a name");
  must(found.remedy != penstock::s3_remedy::resync_clock, "without a date no clock is set");
  const penstock::error shown = s3::error_of(found, "read an object");
  must(shown.recurs() == (found.remedy == penstock::s3_remedy::none), "what has no remedy recurs");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const std::string_view body = penstock::text_of(in.rest());
  outcome([&] {
    if (how == 0) {
      one_list(body);
    } else if (how == 1) {
      touch(s3::read_upload_id(body));
    } else if (how == 2) {
      touch(s3::read_completion({200, {}, std::string(body)}));
    } else {
      one_refusal(static_cast<int>(how) * 4, std::string(body));
    }
  });
  return 0;
}
