"""Tests of agents: `run_tests.py BUILD [NAME...]`. What cannot run is said with the reason, and is no failure."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench  # noqa: E402


def main():
    build, names = sys.argv[1], sys.argv[2:]
    why_not = bench.enter_namespace()
    import http_agent_tests
    import mcp_tests
    import program_tests
    modules = [http_agent_tests, mcp_tests, program_tests]
    suite = unittest.TestSuite()
    for module in modules:
        for case in vars(module).values():
            if isinstance(case, type) and issubclass(case, unittest.TestCase):
                case.build, case.why_not = build, why_not
                for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
                    if not names or any(name in test.id() for name in names):
                        suite.addTest(test)
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"not run: {reason} ({sum(1 for _, why in result.skipped if why == reason)} tests)")
    print(f"figure: {result.testsRun - len(result.skipped)} tests of agents run, {len(result.skipped)} not run")
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
