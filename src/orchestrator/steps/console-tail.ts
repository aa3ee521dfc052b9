import { cleanText } from '../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import { askConsole } from '../platform/call-platform.ts';
import type { StepContext } from './context.ts';

const MAX_LINES = 200;
const MAX_BYTES = 16 * 1024;
/** Of a key only its kind stays, and of what looks like a secret its name. */
const KEY_BLOCK = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g;
/** The same, where the tail begins in the middle of one. */
const CUT_KEY_BLOCK = /^[\s\S]*-----END ([A-Z0-9 ]*PRIVATE KEY)-----/;
const SECRET =
  /((?:password|passwd|passphrase|secret|token|api[-_ ]?key|authorization)[^\s:=]*\s*[:=]\s*)\S.*/gi;

/**
 * Logs what a machine that failed wrote to its console last, as one line, where the platform can tell; and keeps it for
 * the history. That it cannot delays nothing.
 */
export async function readConsole(context: StepContext, record: InstanceRecord): Promise<void> {
  const { driver, log, trace } = context;
  const { consoleTail } = driver;
  if (consoleTail === undefined) return;
  const names = instanceLogNames(record);
  const answer = await askConsole(context, () => consoleTail.call(driver, record.ownerRef), toLines);
  if ('problem' in answer)
    log.info({ ...names, reason: answer.problem }, 'the console of a failed machine could not be read');
  else if (answer.value.length > 0) {
    log.warn({ ...names, console: answer.value }, 'the end of the console of a failed machine');
    if (trace !== undefined) trace.console = answer.value.join('\n');
  }
}

/** The last lines, each cleaned. */
function toLines(tail: string | undefined): string[] {
  if (tail === undefined) return [];
  const text = Buffer.from(tail).subarray(-MAX_BYTES).toString();
  const lines = text
    .replace(KEY_BLOCK, '[$1]')
    .replace(CUT_KEY_BLOCK, '[$1]')
    .replace(SECRET, '$1[…]')
    .split(/\r\n|[\r\n]/);
  return lines
    .map(cleanText)
    .filter((line) => line !== '')
    .slice(-MAX_LINES);
}
