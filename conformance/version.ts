import { readPackageJson } from './package-root.ts';
import { textField } from './wire/json.ts';

/** The version of the package, which is that of the suite. */
export const suiteVersion = textField(readPackageJson('package.json'), 'version') ?? 'unknown';
