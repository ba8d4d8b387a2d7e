/** Failed logins are counted in windows of this length, from the first failure on. */
export const FAILED_LOGIN_WINDOW_SECONDS = 15 * 60;
