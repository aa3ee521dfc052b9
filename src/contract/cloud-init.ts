import { posix } from 'node:path';
import { z } from 'zod';

const MAX_CONTENT_BYTES = 256 * 1024;
/** Linux: PATH_MAX without the NUL, and NAME_MAX. */
const MAX_PATH_BYTES = 4095;
const MAX_PATH_PART_BYTES = 255;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/;

const isText = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
const textSchema = z.string().refine(isText, 'expected well-formed text without NUL');

/**
 * A Debian or RPM package name, with an optional version or architecture. It refuses options of the package tool, and
 * apt's `name-`, which removes the package.
 */
const packageNameSchema = z
  .string()
  .max(255)
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9+._:~=-]*[A-Za-z0-9+._~])?$/,
    'expected a package name, optionally with "=version"',
  );

function isPlainAbsolutePath(path: string): boolean {
  return path.startsWith('/') && !path.endsWith('/') && posix.normalize(path) === path;
}

function fitsLinuxLimits(path: string): boolean {
  const parts = path.split('/');
  return (
    Buffer.byteLength(path) <= MAX_PATH_BYTES &&
    parts.every((part) => Buffer.byteLength(part) <= MAX_PATH_PART_BYTES)
  );
}

/** O: CloudInitFile. */
const cloudInitFileSchema = z
  .object({
    path: z
      .string()
      .max(
        MAX_PATH_BYTES,
        `expected at most ${MAX_PATH_BYTES} bytes, and ${MAX_PATH_PART_BYTES} between slashes`,
      )
      .refine(isPlainAbsolutePath, 'expected an absolute path to a file without "." or ".." parts')
      .refine(
        (path) => !CONTROL_CHARACTERS.test(path) && path.isWellFormed(),
        'expected well-formed text without control characters',
      )
      .refine(
        fitsLinuxLimits,
        `expected at most ${MAX_PATH_BYTES} bytes, and ${MAX_PATH_PART_BYTES} between slashes`,
      ),
    content: textSchema
      .max(MAX_CONTENT_BYTES, `expected at most ${MAX_CONTENT_BYTES} bytes`)
      .refine(
        (text) => Buffer.byteLength(text) <= MAX_CONTENT_BYTES,
        `expected at most ${MAX_CONTENT_BYTES} bytes`,
      )
      .meta({ description: 'Plain text.' }),
    owner: z
      .string()
      .max(65)
      .regex(/^[a-z_][a-z0-9_-]{0,31}(:[a-z_][a-z0-9_-]{0,31})?$/, 'expected "user" or "user:group"')
      .optional(),
    permissions: z
      .string()
      .max(5)
      .regex(/^0?[0-7]{3,4}$/, 'expected an octal mode such as "0644"')
      .optional(),
  })
  .meta({ id: 'CloudInitFile' });
export type CloudInitFile = z.infer<typeof cloudInitFileSchema>;

/** O: CloudInitConfig. Only these five fields are honored; nothing is passed through as raw YAML. */
export const cloudInitSchema = z
  .object({
    runcmd: z.array(textSchema.min(1).max(16_384)).max(256).optional(),
    packages: z.array(packageNameSchema).max(256).optional(),
    package_update: z.boolean().optional(),
    package_upgrade: z.boolean().optional(),
    write_files: z.array(cloudInitFileSchema).max(128).optional(),
  })
  .meta({ id: 'CloudInitConfig' });
export type CloudInit = z.infer<typeof cloudInitSchema>;
