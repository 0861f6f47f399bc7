#include "steering/trigger.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ks::steering {
namespace {

signals::SignalSet known(const std::map<std::string, signals::Value>& values) {
  signals::SignalSet set;
  for (const auto& [name, value] : values) set.set(name, value, "test");
  return set;
}

std::string error_of(const std::string& text) {
  try {
    Trigger trigger(text, {"bank.toml", 7, 12});
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Trigger, OrBindsWeakerThanAndAndNotBindsStrongest) {
  const auto now = known({{"n_evals", 5.0}, {"claims_done", false}, {"noise_known", false}});
  EXPECT_EQ(Trigger("n_evals > 3 OR claims_done AND noise_known").evaluate(now), Truth::kTrue);
  EXPECT_EQ(Trigger("(n_evals > 3 OR claims_done) AND noise_known").evaluate(now), Truth::kFalse);
  EXPECT_EQ(Trigger("NOT noise_known AND n_evals > 3").evaluate(now), Truth::kTrue);
  EXPECT_EQ(Trigger("NOT (noise_known AND n_evals > 3)").evaluate(now), Truth::kTrue);
}

TEST(Trigger, AnUnknownSignalNeverMakesItFire) {
  const auto nothing = known({});
  EXPECT_EQ(Trigger("ratio_min < 0.5").evaluate(nothing), Truth::kUnknown);
  EXPECT_EQ(Trigger("NOT noise_known").evaluate(nothing), Truth::kUnknown);
  EXPECT_EQ(Trigger("NOT ratio_min < 0.5").evaluate(nothing), Truth::kUnknown);
}

TEST(Trigger, WhatIsKnownMayDecideAlone) {
  const auto now = known({{"n_evals", 5.0}});
  EXPECT_EQ(Trigger("n_evals > 3 OR ratio_min < 0.5").evaluate(now), Truth::kTrue);
  EXPECT_EQ(Trigger("n_evals < 3 AND ratio_min < 0.5").evaluate(now), Truth::kFalse);
  EXPECT_EQ(Trigger("n_evals > 3 AND ratio_min < 0.5").evaluate(now), Truth::kUnknown);
}

TEST(Trigger, ComputesProductsAndQuotientsOfSignals) {
  const auto now = known({{"effect_rel", 0.03}, {"noise_rel", 0.02}, {"n_evals", 8.0}, {"n_configs", 0.0}});
  EXPECT_EQ(Trigger("effect_rel < 2 * noise_rel").evaluate(now), Truth::kTrue);
  EXPECT_EQ(Trigger("effect_rel / noise_rel > 1.4 AND 2 * (n_evals - 3) == 10").evaluate(now), Truth::kTrue);
}

TEST(Trigger, DividingByASignalThatIsZeroIsUnknown) {
  const auto now = known({{"n_evals", 8.0}, {"n_configs", 0.0}});
  EXPECT_EQ(Trigger("n_evals / n_configs > 1").evaluate(now), Truth::kUnknown);
  EXPECT_EQ(Trigger("NOT n_evals / n_configs > 1").evaluate(now), Truth::kUnknown);
}

TEST(Trigger, ComparesWords) {
  const auto now = known({{"bound_source", std::string("datasheet")}});
  EXPECT_EQ(Trigger("bound_source == 'datasheet'").evaluate(now), Truth::kTrue);
  EXPECT_EQ(Trigger("bound_source != 'datasheet'").evaluate(now), Truth::kFalse);
}

TEST(Trigger, ErrorsNameFileLineAndColumn) {
  EXPECT_EQ(error_of("geomaen < goal"), "bank.toml:7:12: unknown signal \"geomaen\" (did you mean geomean?)");
  EXPECT_NE(error_of("geomean < 2 / 0").find("bank.toml:7:26: this divides by zero"), std::string::npos);
  EXPECT_NE(error_of("claims_done > 3").find("cannot be compared"), std::string::npos);
  EXPECT_NE(error_of("geomean").find("must be a truth"), std::string::npos);
  EXPECT_NE(error_of("(geomean < 1").find("\")\" is missing"), std::string::npos);
  EXPECT_NE(error_of("geomean < 1 claims_done").find(":24: \"claims_done\" is not expected"), std::string::npos);
  EXPECT_NE(error_of("geomean < 1 AND").find("missing at the end"), std::string::npos);
  EXPECT_NE(error_of("geomean = 1").find("means nothing here"), std::string::npos);
  EXPECT_NE(error_of("bound_source == 'data").find("not closed"), std::string::npos);
  EXPECT_NE(error_of("").find("missing at the end"), std::string::npos);
}

TEST(Trigger, SeesWhatCanNeverBeTrue) {
  EXPECT_TRUE(Trigger("n_evals > 3 AND n_evals < 4").never_fires());
  EXPECT_TRUE(Trigger("n_evals < 0").never_fires());
  EXPECT_TRUE(Trigger("claims_done AND NOT claims_done").never_fires());
  EXPECT_TRUE(Trigger("geomean < goal AND goal <= geomean").never_fires());
  EXPECT_TRUE(Trigger("bound_source == 'measured' AND bound_source == 'datasheet'").never_fires());
  EXPECT_TRUE(Trigger("NOT (ratio_min < 2 OR ratio_min > 1)").never_fires());
  EXPECT_FALSE(Trigger("ratio_min > 3 AND ratio_min < 4").never_fires());
  EXPECT_FALSE(Trigger("n_evals > 3 AND n_evals < 4 OR claims_done").never_fires());
}

TEST(Trigger, SeesWhatIsAlwaysTrue) {
  EXPECT_TRUE(Trigger("n_evals >= 0").always_fires());
  EXPECT_TRUE(Trigger("geomean < 1 OR geomean >= 1").always_fires());
  EXPECT_FALSE(Trigger("n_evals >= 1").always_fires());
}

TEST(Trigger, IsReachableWhereOneBranchNeedsOnlyWhatIsAvailable) {
  const auto available = [](std::string_view name) { return name == "n_evals"; };
  EXPECT_TRUE(Trigger("n_evals > 3 OR claims_cause").can_fire_with(available));
  EXPECT_FALSE(Trigger("n_evals > 3 AND claims_cause").can_fire_with(available));
  EXPECT_FALSE(Trigger("n_evals > 3 AND n_evals < 2 OR claims_cause").can_fire_with(available));
}

TEST(Trigger, SeverityIsTheDistancePastTheThresholdInUnitsOfIt) {
  const auto now = known({{"ratio_spread", 6.0}, {"n_configs", 9.0}, {"claims_done", true}});
  EXPECT_DOUBLE_EQ(Trigger("ratio_spread > 2").severity(now), 2);
  EXPECT_DOUBLE_EQ(Trigger("ratio_spread > 2 AND n_configs >= 6").severity(now), 0.5);
  EXPECT_DOUBLE_EQ(Trigger("ratio_spread > 2 OR n_configs >= 6").severity(now), 2);
  EXPECT_DOUBLE_EQ(Trigger("claims_done").severity(now), 1);
  EXPECT_DOUBLE_EQ(Trigger("ratio_spread > 20").severity(now), 0);
}

TEST(Trigger, ListsItsSignalsOnceAndExplainsTheirValues) {
  const Trigger trigger("geomean < goal AND geomean > 0.5");
  EXPECT_EQ(trigger.signals(), (std::vector<std::string>{"geomean", "goal"}));
  const auto lines = trigger.explain(known({{"geomean", 0.75}}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "geomean (0.75) < goal (unknown): unknown");
  EXPECT_EQ(lines[1], "geomean (0.75) > 0.5: true");
}

}  // namespace
}  // namespace ks::steering
