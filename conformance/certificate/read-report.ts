import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { readPackageJson } from '../contract/package.ts';
import type { Report } from '../report/report.ts';
import { hasDuplicateNames, isObject, parseJson } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { isRedactable, redactedIn } from './digest.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
let compiled: ReturnType<typeof ajv.compile> | undefined;

/**
 * Reads a report that `--json` wrote, whole or with redacted parts. A text that two readers could understand differently
 * is refused.
 */
export function parseReport(text: string): { report: Report } | { problem: string } {
  const report = parseJson(text);
  if (!isObject(report)) return { problem: 'it is not a JSON object' };
  if (report['format'] !== 1)
    return {
      problem: `its format is ${printable(JSON.stringify(report['format']) ?? 'missing', 20)}, not 1`,
    };
  if (hasDuplicateNames(text, report)) return { problem: 'an object in it has two fields of one name' };
  compiled ??= ajv.compile(readPackageJson('conformance/report/schema.json') as object);
  if (compiled(report)) return { report: report as unknown as Report };
  const redacted = redactedIn(report);
  const error = compiled.errors?.find(({ instancePath }) => !isAboutRedacted(instancePath, redacted));
  return error === undefined ? { report: report as unknown as Report } : { problem: toProblem(error) };
}

/** Whether a redacted value breaks the schema there: at its place, or in an object whose form depends on it. */
const isAboutRedacted = (path: string, redacted: readonly string[]): boolean =>
  isRedactable(path) && redacted.some((each) => `${each}/`.startsWith(`${path}/`));

function toProblem({ instancePath, message, params }: ErrorObject): string {
  const field = params['additionalProperty'] === undefined ? '' : ` (${params['additionalProperty']})`;
  return printable(`${instancePath === '' ? 'the report' : instancePath} ${message}${field}`, 200);
}
