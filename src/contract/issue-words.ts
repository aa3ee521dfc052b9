import type { z } from 'zod';
import { formatPath, type Issue } from './errors.ts';

type ZodIssue = z.core.$ZodIssue;

const nouns: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

const formats: Readonly<Record<string, string>> = {
  datetime: 'a time in ISO 8601 and UTC, such as "2026-01-31T12:00:00Z"',
  email: 'an e-mail address',
  url: 'a URL',
  uuid: 'a UUID',
};

/** A failed parse. `data` is the parsed value, if known. */
interface FailedParse {
  error: { issues: readonly ZodIssue[] };
  data?: unknown;
}

/**
 * Converts zod's issues to Berth's wording: a path, and what was expected there. The input's text is never repeated.
 * Where the type is wrong, zod's other issues about the value (such as a string's length, for a list) are left out.
 */
export function toIssues({ error, data }: FailedParse): Issue[] {
  const wrongTypes = new Set<string>();
  return error.issues.flatMap((issue) => {
    const path = formatPath(issue.path);
    if (wrongTypes.has(path)) return [];
    if (issue.code === 'invalid_type') wrongTypes.add(path);
    return [{ path, message: describeIssue(issue, data) }];
  });
}

/** Words one issue, such as `is required: a string` or `expected a string, got a list`. */
export function describeIssue(issue: ZodIssue, raw: unknown): string {
  if (!isZodsOwn(issue)) return issue.message;
  const isMissing =
    issue.message.endsWith('received undefined') ||
    (raw !== undefined && valueAt(raw, issue.path) === undefined);
  const expected = expectedOf(issue, raw);
  if (expected === undefined) return issue.message;
  return isMissing ? `is required: ${expected}` : `expected ${expected}${gotOf(issue)}`;
}

/** Whether the message is zod's default, not one of Berth's schemas. */
function isZodsOwn({ code, message }: ZodIssue): boolean {
  return code === 'invalid_union' || /^(Invalid|Too small|Too big)/.test(message);
}

/** Returns the element of `value` at `path`, or undefined. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[part],
    value,
  );
}

/** The expected value in words. Undefined if only zod's message is available. */
function expectedOf(issue: ZodIssue, raw: unknown): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return nounOf(issue.expected);
    case 'invalid_value':
      return oneOf(issue.values.map((value) => JSON.stringify(value)));
    case 'too_small':
      return atLeast(issue);
    case 'too_big':
      return atMost(issue);
    case 'not_multiple_of':
      return `a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return formatOf(issue);
    case 'invalid_union':
      return unionOf(issue, raw);
    default:
      return undefined;
  }
}

function nounOf(type: string): string {
  return nouns[type] ?? type;
}

function oneOf(texts: readonly string[]): string {
  const [only] = texts;
  return texts.length === 1 && only !== undefined ? only : `one of ${texts.join(', ')}`;
}

const units: Readonly<Record<string, string>> = {
  string: 'character',
  array: 'entry',
  set: 'entry',
  map: 'entry',
};

function counted(count: number | bigint, origin: string): string {
  const unit = units[origin];
  if (unit === undefined) return String(count);
  if (count === 1) return `1 ${unit}`;
  return `${count} ${unit === 'entry' ? 'entries' : `${unit}s`}`;
}

function atLeast({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  const isExclusive = inclusive === false;
  return `${isExclusive ? 'more than' : 'at least'} ${counted(minimum, origin)}`;
}

function atMost({ origin, maximum, inclusive }: z.core.$ZodIssueTooBig): string {
  const isExclusive = inclusive === false;
  return `${isExclusive ? 'less than' : 'at most'} ${counted(maximum, origin)}`;
}

function formatOf({ format, pattern }: z.core.$ZodIssueInvalidStringFormat): string {
  return formats[format] ?? (pattern === undefined ? `a ${format}` : `text that matches ${pattern}`);
}

function unionOf(issue: z.core.$ZodIssueInvalidUnion, raw: unknown): string | undefined {
  const alternatives = issue.errors
    .flat()
    .map(
      (inner) =>
        (isZodsOwn(inner) ? expectedOf(inner, raw) : undefined) ?? inner.message.replace(/^expected /, ''),
    );
  return alternatives.length === 0 ? undefined : [...new Set(alternatives)].join(', or ');
}

/** The received type, if zod reports it. Never the value. */
function gotOf(issue: ZodIssue): string {
  if (issue.code !== 'invalid_type') return '';
  const received = /received (\w+)$/.exec(issue.message)?.[1];
  if (received === undefined || (issue.expected === 'int' && received === 'number')) return '';
  return `, got ${received === 'NaN' ? 'no number' : nounOf(received)}`;
}
