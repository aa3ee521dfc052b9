import { posix } from 'node:path';
import { z } from 'zod';

const MAX_CONTENT_BYTES = 256 * 1024;

const noNul = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
const command = z.string().min(1).max(16_384).refine(noNul, 'expected well-formed text without NUL');

/** A Debian or RPM package name, with an optional version: never an option for the package tool. */
const packageName = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9+._:~=-]*$/, 'expected a package name, optionally with "=version"');

function isPlainAbsolutePath(path: string): boolean {
  return path.startsWith('/') && !path.endsWith('/') && posix.normalize(path) === path;
}

/** O: CloudInitFile. */
export const cloudInitFileSchema = z
  .object({
    path: z
      .string()
      .max(4096)
      .refine(noNul, 'expected well-formed text without NUL')
      .refine(isPlainAbsolutePath, 'expected an absolute path to a file without "." or ".." parts'),
    content: z
      .string()
      .refine((text) => text.isWellFormed(), 'expected well-formed Unicode text')
      .refine((text) => Buffer.byteLength(text) <= MAX_CONTENT_BYTES, `expected at most ${MAX_CONTENT_BYTES} bytes`)
      .meta({ description: 'Plain text.' }),
    owner: z
      .string()
      .max(65)
      .regex(/^[a-z_][a-z0-9_-]{0,31}(:[a-z_][a-z0-9_-]{0,31})?$/, 'expected "user" or "user:group"')
      .optional(),
    permissions: z
      .string()
      .regex(/^0?[0-7]{3,4}$/, 'expected an octal mode such as "0644"')
      .optional(),
  })
  .meta({ id: 'CloudInitFile' });
export type CloudInitFile = z.infer<typeof cloudInitFileSchema>;

/** O: CloudInitConfig. The five fields are all that is honored; nothing is passed through as raw YAML. */
export const cloudInitSchema = z
  .object({
    runcmd: z.array(command).max(256).optional(),
    packages: z.array(packageName).max(256).optional(),
    package_update: z.boolean().optional(),
    package_upgrade: z.boolean().optional(),
    write_files: z.array(cloudInitFileSchema).max(128).optional(),
  })
  .meta({ id: 'CloudInitConfig' });
export type CloudInit = z.infer<typeof cloudInitSchema>;
