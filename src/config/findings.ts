import type { z } from 'zod';
import { formatPath, toSentence } from '../contract/errors.ts';
import { describeIssue } from '../contract/issue-words.ts';
import { Fatal } from '../ports/errors.ts';

/** One problem of the configuration, and its place. */
export interface Finding {
  /** The file as the user named it, or the flag or environment variable of the value. */
  file: string;
  /** 1-based; undefined if the finding has no place in a file. */
  line: number | undefined;
  column: number | undefined;
  /** Such as `offers[3].price_per_hour`; empty if it concerns the file as a whole. */
  path: string;
  message: string;
}

export type IssuePath = readonly PropertyKey[];

/** A configuration that cannot be used. The message can be shown unchanged. */
export class ConfigError extends Fatal {
  override readonly name = 'ConfigError';
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    super([...findings.map(toLine), remedy(findings)].join('\n'));
    this.findings = findings;
  }
}

/** Formats a finding as `berth.yaml:12:5 platform.address: expected …`, on one line even if a key has line breaks. */
export function toLine({ file, line, column, path, message }: Finding): string {
  const place = line === undefined ? file : `${file}:${line}:${column}`;
  const text = path === '' ? `${place}: ${message}` : `${place} ${toSentence({ path, message })}`;
  return text.replaceAll('\n', '\\u000a');
}

function remedy(findings: readonly Finding[]): string {
  const what = findings.length === 1 ? 'Correct it' : `Correct these ${findings.length}`;
  return findings.some(({ line }) => line !== undefined)
    ? `${what}, then run \`berth check-config\` again.`
    : `${what} and try again.`;
}

/** An issue of zod: a path, a message, and whether it concerns the key or its value. */
export interface PlainIssue {
  path: IssuePath;
  message: string;
  at: 'key' | 'value';
}

/** Converts zod's issues. Each unknown key becomes an issue. `raw` is the checked value. */
export function toPlainIssues(raw: unknown, issues: readonly z.core.$ZodIssue[]): PlainIssue[] {
  return issues.flatMap((issue): PlainIssue[] => {
    const { path } = issue;
    if (issue.code === 'unrecognized_keys') {
      const message = 'unknown key; remove it or correct its spelling';
      return issue.keys.map((key) => ({ path: [...path, key], message, at: 'key' }));
    }
    if (issue.code === 'invalid_key')
      return [{ path, message: issue.issues.map(({ message }) => message).join('; '), at: 'key' }];
    if (issue.code === 'custom')
      return [{ path, message: issue.message, at: issue.params?.['at'] === 'key' ? 'key' : 'value' }];
    return [{ path, message: describeIssue(issue, raw), at: 'value' }];
  });
}

/** A 1-based position. */
export interface Position {
  line: number;
  column: number;
}

/** A parsed YAML file with the position of each value. */
export interface YamlFile {
  /** As the user named it. */
  file: string;
  value: Record<string, unknown>;
  /** The position of the node at `path`, or of its nearest ancestor. */
  locate(path: IssuePath, at: 'key' | 'value'): Position;
}

/** Converts each issue to a finding at the line of its node, in the order of the file. */
export function toFindings(yaml: YamlFile, issues: readonly PlainIssue[]): Finding[] {
  return issues
    .map(({ path, message, at }) => ({
      file: yaml.file,
      ...yaml.locate(path, at),
      path: formatPath(path),
      message,
    }))
    .sort((a, b) => a.line - b.line || a.column - b.column);
}

/** Returns the findings that `read` returns or throws. */
export function collectFindings(read: () => Finding[]): Finding[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigError) return [...error.findings];
    throw error;
  }
}
