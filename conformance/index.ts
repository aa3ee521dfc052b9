/**
 * The conformance suite as a library: run it against a target, judge the transcript, and render the report. `judge`
 * and `toReport` depend only on the records, so a transcript can be judged again at any time.
 */
export type { Check } from './checks/check.ts';
export { CHECKS } from './checks/index.ts';
export { suiteVersion } from './contract/package.ts';
export { loadRequirements, type Requirement, type Requirements } from './contract/requirements.ts';
export type { Finding, Problem } from './evidence/finding.ts';
export { type Clock, systemClock } from './http/clock.ts';
export { type HttpTransportOptions, httpTransport } from './http/http-transport.ts';
export type { HttpAnswer, HttpFailure, HttpRequest, SendLimits, Transport } from './http/transport.ts';
export { explain, toList } from './report/explain.ts';
export { toHtml } from './report/html/html.ts';
export { toJunit } from './report/junit.ts';
export { toJson, toReport } from './report/model.ts';
export { SWEEP_COMMAND } from './report/receipt.ts';
export type * from './report/report.ts';
export { type TerminalOptions, toTerminal } from './report/terminal/terminal.ts';
export type { Entry, LedgerFile, LedgerLine } from './resources/ledger.ts';
export {
  defaultStateFolder,
  openLedgerFile,
  readOpenLedgers,
  type StoredLedger,
} from './resources/ledger-file.ts';
export { type SweepParts, type Swept, sweep } from './resources/sweep.ts';
export type { RunEvent, RunOptions, RunParts } from './run/options.ts';
export { run } from './run/run.ts';
export { SCENARIOS, scenariosFor } from './scenarios/index.ts';
export type { Scenario } from './scenarios/scenario.ts';
export type { KeyPair, SshClient, SshLogin, SshOutcome } from './ssh/ssh-client.ts';
export { ssh2Client } from './ssh/ssh2-client.ts';
export type * from './transcript/records.ts';
export { readTranscript, SuiteFault, TranscriptError } from './transcript/transcript.ts';
export { type Judged, judge, type Ruling, type Verdict } from './verdict/judge.ts';
export { EXIT, type Outcome } from './verdict/outcome.ts';
