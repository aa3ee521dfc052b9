import type { Log } from '../../../src/ports/log.ts';

export interface LogLine {
  level: keyof Log;
  fields: Record<string, unknown>;
  message: string;
}

const ignore = (): void => undefined;
export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A log whose lines can be looked at. */
export function collectLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const into =
    (level: keyof Log) =>
    (fields: object, message: string): void =>
      void lines.push({ level, fields: { ...fields }, message });
  return {
    log: { debug: into('debug'), info: into('info'), warn: into('warn'), error: into('error') },
    lines,
  };
}
