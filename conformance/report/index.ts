export { explain, toList } from './explain.ts';
export { toHtml } from './html.ts';
export { toJunit } from './junit.ts';
export { toJson, toReport } from './model.ts';
export { SWEEP_COMMAND } from './receipt.ts';
export type * from './report.ts';
export { type TerminalOptions, toTerminal } from './terminal.ts';
