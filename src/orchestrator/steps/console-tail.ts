import { cleanText } from '../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import { askConsole } from '../platform/call-platform.ts';
import type { StepContext } from './context.ts';

const MAX_LINES = 200;
const MAX_BYTES = 16 * 1024;
/** A private key. Only its kind is kept; of other secrets only the name is kept. */
const KEY_BLOCK = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g;
/** A private key whose beginning is cut off by the tail. */
const CUT_KEY_BLOCK = /^[\s\S]*-----END ([A-Z0-9 ]*PRIVATE KEY)-----/;
const SECRET =
  /((?:password|passwd|passphrase|secret|token|api[-_ ]?key|authorization)[^\s:=]*\s*[:=]\s*)\S.*/gi;

/**
 * Logs the end of a failed machine's console as one line and keeps it for the history, if the platform supports that. A
 * failure delays nothing.
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
