// One self-contained HTML page from page data: inline style, inline script, the data as JSON; nothing is fetched. The
// same page, told where its events come from, is what `serve` shows live.
#pragma once

#include <string>

#include "report/page_data.h"

namespace ks::report {

/// How the page is used.
struct PageOptions {
  bool is_live = false;  ///< fetch changes from `events`, show the controls
  std::string token;     ///< goes with every request of a live page
};

/// The whole page.
std::string page_html(const PageData& page, const PageOptions& options = {});

/// JSON that may stand inside a <script> element: no "<" in it.
std::string script_json(const Json& json);

/// The page's parts (page_style.cc, page_script_*.cc).
extern const char* const kPageStyle;
extern const char* const kPageScript;
extern const char* const kPageCharts;
extern const char* const kPageTables;
extern const char* const kPageLive;

}  // namespace ks::report
